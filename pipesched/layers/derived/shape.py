"""A transformer's shape, its training settings, its parallelism inside a stage, and the rates of the hardware."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from itertools import groupby
from math import prod
from typing import NamedTuple

from pipesched.layers.derived.mixer import Mixing
from pipesched.layers.derived.precision import ALL_ALIKE, ENDS, PRECISIONS, Format, Formats, Precision


@dataclass(frozen=True)
class Attention:
    """Multi-head or grouped-query attention: numbers of heads, and size of a head.

    Heads are those of queries, and of keys and values (`kv_heads`). Queries, keys and values are projections of the
    layer's input. `gated`: one more multiplies what attention gives before the output projection (Qwen3-Next).
    `normalized`: each head's queries and keys are normalized.
    """

    heads: int
    kv_heads: int
    head_size: int
    gated: bool = False
    normalized: bool = False


@dataclass(frozen=True)
class LatentAttention:
    """Multi-head latent attention (DeepSeek-V2, arXiv 2405.04434): queries, keys and values from low-rank latents.

    A head's query and key have `key_size` numbers from the latent and `rope_size` with the position, its value has
    `value_size`. The latents of keys and values have `kv_rank` numbers, those of queries `query_rank`, None where
    queries are projected from the input itself.
    """

    heads: int
    query_rank: int | None
    kv_rank: int
    key_size: int
    rope_size: int
    value_size: int


@dataclass(frozen=True)
class Window:
    """Attention to near tokens alone, in all layers but the `full` ones, which are numbered from 0.

    A token attends to itself and the `tokens` - 1 before it (a sliding window) or, if `chunked`, to itself and the
    tokens before it in its own chunk of `tokens`.
    """

    tokens: int
    full: frozenset[int] = frozenset()
    chunked: bool = False

    def reach(self, sequence: int) -> Fraction:
        """Return twice the mean number of keys that a token attends to, for a sequence of so many tokens.

        With causal attention to all tokens that number is the length of the sequence.
        """
        near = min(self.tokens, sequence)
        if not self.chunked:
            return 2 * near - Fraction(near * near, sequence)
        chunks, last = divmod(sequence, near)
        return Fraction(chunks * near * near + last * last, sequence)


# Ends the names of layers whose attention is to near tokens alone, of those with a mixer in place of attention, and of
# those at both ends of a model whose products are in 16 bits.
_WINDOWED, _MIXED, _KEPT = "-window", "-linear", "-bf16"


class LayerKind(NamedTuple):
    """A kind of layers: `moe`, with experts; `windowed`, its attention is to near tokens alone.

    `attends`: it has attention; `mixes`: it has the model's mixer; `block`: it has experts or a feed-forward block.
    `within` says where formats of products are others: `ENDS` or `MTP` of `precision`, or empty.
    """

    moe: bool
    windowed: bool = False
    attends: bool = True
    mixes: bool = False
    block: bool = True
    within: str = ""

    @property
    def parts(self) -> int:
        """The number of its parts with a normalization before them: attention or mixer, and block."""
        return int(self.attends or self.mixes) + int(self.block)


# Letters of a pattern of layers, as in Megatron's --hybrid-layer-pattern, and the names of such layers.
LETTERS = {"M": "mamba", "G": "gdn", "*": "attention", "-": "mlp", "E": "moe"}


@dataclass(frozen=True)
class Experts:
    """A mixture of `number` experts in place of a feed-forward block.

    A token uses `per_token` of them besides `shared` ones; `ffn` is the width of each. A token's experts are all in
    `groups_per_token` of `groups` groups of consecutive ones (node-limited routing, arXiv 2412.19437, section 2.1.2).
    With `latent`, experts work on so many numbers of a token, which two products of the layer make and bring back
    (Nemotron 3 Super); None: on the hidden size. `biased`: the router has a bias for each expert; `shared_gate`: a
    product with one column weighs the shared ones.
    """

    number: int
    per_token: int
    shared: int
    ffn: int
    groups: int = 1
    groups_per_token: int = 1
    latent: int | None = None
    biased: bool = True
    shared_gate: bool = False

    def reached(self, parts: int) -> float:
        """Return in how many of `parts` a token has one of its experts on average; parts are equal ranges of experts.

        A token has `groups_per_token` groups, any with equal chance, and each of its experts in any of these with equal
        chance. For the number of groups that have one of its experts its mean is taken, and where that is not whole the
        result is interpolated between the whole numbers next to it.
        """
        chosen, all_groups = self.groups_per_token, self.groups
        if parts > all_groups:
            return _spread(self.per_token, chosen * parts / all_groups)
        used, others = _spread(self.per_token, chosen), all_groups - all_groups / parts
        whole = int(used)
        missed, more = (
            prod((others - at) / (all_groups - at) for at in range(number)) if number <= others else 0
            for number in (whole, whole + 1)
        )
        return parts * (1 - missed - (used - whole) * (more - missed))


def _spread(number: int, parts: float) -> float:
    """Return the mean number of `parts` that have one or more of `number` items, each in any part with equal chance."""
    return parts * (1 - (1 - 1 / parts) ** number)


@dataclass(frozen=True)
class Shape:
    """A decoder: first `dense_layers` layers with a feed-forward block of width `ffn`, then layers with experts.

    Of the layers after the dense ones only every `experts_every`-th has experts, beginning with the first; those
    between are dense too (Llama 4, Megatron's --moe-layer-freq). `gated`: a block has two projections up and one down
    (SwiGLU), else one of each. `mtp_layers` is the number of multi-token prediction layers (arXiv 2412.19437, section
    2.2), which `layers` does not count; `tied`: the head shares the embedding's parameters. `window`: some layers
    attend to near tokens alone. `mixing`: some have a mixer in place of attention, or all have both. With a `pattern`
    each layer is one of attention, mixer, block and experts, as its letter says (`LETTERS`). `experts`, `window` and
    `mixing` are None in a model without.
    """

    layers: int
    hidden: int
    vocabulary: int
    attention: Attention | LatentAttention
    ffn: int
    dense_layers: int
    experts: Experts | None = None
    mtp_layers: int = 0
    gated: bool = True
    tied: bool = False
    experts_every: int = 1
    window: Window | None = None
    mixing: Mixing | None = None
    pattern: str = ""

    @property
    def runs(self) -> list[tuple[LayerKind, int]]:
        """The layers in order as runs of equal ones: their kind and their number."""
        return [(kind, len([*own])) for kind, own in groupby(map(self._kind, range(self.layers)))]

    @property
    def has_dense_blocks(self) -> bool:
        """True if a layer, or one of multi-token prediction, has a feed-forward block without experts."""
        predicted = bool(self.mtp_layers) and self.experts is None
        return predicted or any(kind.block and not kind.moe for kind, _ in self.runs)

    def _kind(self, layer: int) -> LayerKind:
        """Return the kind of a layer, numbered from 0."""
        near = self.window is not None and layer not in self.window.full
        if self.pattern:
            letter = self.pattern[layer]
            attends = letter == "*"
            return LayerKind(letter == "E", near and attends, attends, letter in "MG", letter in "-E")
        after, mixing = layer - self.dense_layers, self.mixing
        moe = self.experts is not None and after >= 0 and after % self.experts_every == 0
        attends = mixing is None or mixing.both or layer in mixing.attention
        return LayerKind(moe, near and attends, attends, mixing is not None and (mixing.both or not attends))

    def name_of(self, kind: LayerKind) -> str:
        """Return the name that layers of a kind have in a plan, such as `layer`, `moe-linear` or `dense-bf16-window`.

        It is `layer`, or if the model has experts `dense` or `moe`; with a pattern the layer's only part: `attention`,
        `mla`, `mlp`, `moe`, or the mixer's name. Appended are `-bf16` where products of layers at both ends stay in 16
        bits, `-linear` where a mixer takes attention's place, `-window` where attention is to near tokens alone.
        """
        if self.pattern:
            attention = "mla" if isinstance(self.attention, LatentAttention) else "attention"
            name = attention if kind.attends else "moe" if kind.moe else "mlp"
            name = LETTERS[next(one for one in self.pattern if one in "MG")] if kind.mixes else name
        else:
            name = "moe" if kind.moe else "dense" if self.experts else "layer"
        mixed = kind.mixes and not kind.attends and not self.pattern
        suffixes = ((kind.within == ENDS, _KEPT), (mixed, _MIXED), (kind.windowed, _WINDOWED))
        return name + "".join(suffix for has, suffix in suffixes if has)

    def reach(self, sequence: int, windowed: bool = False) -> Fraction:
        """Return twice the mean number of keys that a token of a sequence attends to in layers of this kind.

        `windowed`: layers that attend to near tokens alone, else to all. `sequence` is in tokens.
        """
        if not windowed or self.window is None:
            return Fraction(sequence)
        return self.window.reach(sequence)


class Loss(StrEnum):
    """The logits that the loss keeps for its backward.

    `FUSED`: in the format of activations, replaced by their gradients (one kernel: Transformer Engine's,
    FlashAttention's, Liger's). `PARALLEL`: in 32 bits, each tensor parallel device having its part of the vocabulary.
    `GATHERED`: in 32 bits, gathered on every device.
    """

    FUSED = "fused"
    PARALLEL = "parallel"
    GATHERED = "gathered"


# Products of a layer by what Megatron-Core calls them; all projections of latent attention before it are linear_qkv.
LORA_MODULES = ("linear_qkv", "linear_proj", "linear_fc1", "linear_fc2")


class Lora(NamedTuple):
    """LoRA adapters of a rank, on the products named in `modules`."""

    rank: int
    modules: tuple[str, ...] = LORA_MODULES


@dataclass(frozen=True)
class Training:
    """Settings of training that decide times and memory. `microbatch_size` counts sequences of `sequence` tokens.

    `precision` is what numbers take, `formats` are the formats of products that differ from its own.

    `flash`: attention scores are never stored (arXiv 2205.14135). `dropout`: there is some after attention and block.
    `weight_split`: W may run later than B. `modes` are the recomputation modes that a plan may choose; None for the
    usual ones. `fused_norms`: a normalization is one kernel; else several in 32 bits, as in eager PyTorch.
    `fused_activation`: a gated activation function and its product are one kernel. `fused_experts`: products of experts
    have the activation function, and in narrow formats the conversion of its result, in their kernels.
    `fused_accumulation`: products of W add to the gradients of earlier micro-batches; else separate kernels do.
    `early_stop`: recomputation of a whole layer stops before its last product, which no backward reads.

    For `frozen` layers, by `kind_name`, no gradient of weights is computed, kept or exchanged, and there is no
    optimizer state. With `lora` (None: no adapters) this holds for all layers, except for the adapters of layers that
    are not `frozen`.
    """

    sequence: int
    microbatch_size: int = 1
    precision: Precision = PRECISIONS["bf16"]
    flash: bool = True
    dropout: bool = False
    weight_split: bool = True
    modes: tuple[str, ...] | None = None
    fused_norms: bool = True
    fused_activation: bool = True
    fused_accumulation: bool = True
    fused_experts: bool = False
    early_stop: bool = False
    loss: Loss = Loss.PARALLEL
    frozen: frozenset[str] = frozenset()
    lora: Lora | None = None
    formats: Formats = ALL_ALIKE

    def format_of(self, part: str, within: str = "") -> Format:
        """Return the format of the products of a part, by its name in `PARTS`; `within` is that of a `LayerKind`."""
        return self.formats.of(part, self.precision.format, within)

    def precision_of(self, name: str) -> Precision:
        """Return the precision of a layer of this name.

        Embedding, head and `adapters` keep weights as wide as activations.
        """
        return self.precision._replace(weight=None) if name in ("embedding", "head", "adapters") else self.precision

    def is_frozen(self, name: str) -> bool:
        """Return True if the weights of a layer of this name do not train; its adapters may."""
        return self.lora is not None or self.is_named(name)

    def is_named(self, name: str) -> bool:
        """Return True if `frozen` names this layer, by the name that the layer has whatever its attention."""
        return kind_name(name) in self.frozen


def kind_name(name: str) -> str:
    """Return the name of a layer whatever its attention and formats: `moe` of `moe-bf16-window` and of `moe-linear`.

    The endings `-window`, `-linear` and `-bf16` are removed, and nothing else.
    """
    return name.removesuffix(_WINDOWED).removesuffix(_MIXED).removesuffix(_KEPT)


class Sharding(StrEnum):
    """Tensors that data parallel devices shard (ZeRO 0 to 3, arXiv 1910.02054).

    Each value includes the ones before it. `NONE`, the states of the `OPTIMIZER`, the `GRADIENTS`, the `PARAMETERS`.
    """

    NONE = "none"
    OPTIMIZER = "optimizer"
    GRADIENTS = "gradients"
    PARAMETERS = "parameters"


@dataclass(frozen=True)
class Parallel:
    """Parallelism inside a stage: sizes of tensor, context, expert and data parallelism.

    Expert parallelism divides the same `tensor * context * data` devices, with whole experts on each. `sequence`:
    tensors that tensor parallelism does not divide are divided by tokens (sequence parallelism, arXiv 2205.05198).
    """

    tensor: int = 1
    context: int = 1
    expert: int = 1
    data: int = 1
    sharding: Sharding = Sharding.OPTIMIZER
    sequence: bool = True

    @property
    def devices(self) -> int:
        """The number of devices that run one stage together."""
        return self.tensor * self.context * self.data

    @property
    def sharded_optimizer(self) -> bool:
        return self.sharding is not Sharding.NONE

    @property
    def token_split(self) -> int:
        """The number of devices among which tokens are divided between tensor parallel products."""
        return self.context * (self.tensor if self.sequence else 1)


@dataclass(frozen=True)
class Hardware:
    """Rates of one device, in operations, bytes and seconds.

    `flops` is the rate of large products, `flops_8bit` and `flops_4bit` those in formats of fewer bits (None: `flops`),
    `attention_flops` that of attention (None: `flops`), `scan_flops` that of the scans of mixers (None: a share of
    attention's). Work with any other rate that is None or 0 is not counted. `multiprocessors` run tiles of products in
    waves (0: that all are full is assumed). `memory` is in bytes, without what is reserved, `memory_rate` in bytes a
    second. `dense_launch` and `moe_launch` are the least seconds of a layer's forward, the time to launch its kernels,
    of which a backward has twice as many; `moe_wait` are the seconds that each pass of a layer with experts waits for
    its host.

    Bytes a second that a device sends: `pipeline` to the next stage; `tensor`, `data` and `context` in collectives;
    `expert` to experts of other nodes (all other devices if `node`, the devices of a node, is None), and
    `expert_in_node` inside its own. `once_a_node`: a token is sent to a node once for all its experts there. `hidden`
    is the share of tensor and expert exchanges that computation hides; `data_hidden` the share of a backward that can
    hide the exchange of gradients, `gather_hidden` that of the next step's forward for weights (None: the same).
    """

    flops: float
    memory: Fraction
    pipeline: float
    tensor: float | None = None
    expert: float | None = None
    hidden: float = 0
    data: float | None = None
    context: float | None = None
    flops_8bit: float | None = None
    flops_4bit: float | None = None
    attention_flops: float | None = None
    multiprocessors: int = 0
    memory_rate: float | None = None
    dense_launch: float = 0
    moe_launch: float = 0
    moe_wait: float = 0
    node: int | None = None
    expert_in_node: float | None = None
    once_a_node: bool = False
    data_hidden: float = 0
    gather_hidden: float | None = None
    scan_flops: float | None = None

    def product_rate(self, format: Format) -> float:
        """Return the operations a second of large products in a format."""
        return {8: self.flops_8bit, 4: self.flops_4bit}.get(format.bits) or self.flops
