"""Bytes that a forward keeps for its backward, operation by operation: arXiv 2205.05198, section 4.1.

With multi-head attention, a feed-forward block of four times the hidden size without a gate, and dropout, the sum is
that paper's s·b·h·(34 + 5·a·s/h), and 34·s·b·h where attention scores are not stored. Sequence parallelism divides it
all by the tensor parallel size (its equation 4). Without it the inputs of normalizations and projections are whole on
each tensor parallel device.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from pipesched.layers.derived.exchange import hidden_bytes
from pipesched.layers.derived.operations import head_sizes, predicting, stage_tokens, tokens_of
from pipesched.layers.derived.precision import Format
from pipesched.layers.derived.shape import Attention, LatentAttention, LayerKind, Loss, Parallel, Shape, Training

_LOGIT = 4  # bytes: logits and router probabilities are kept in 32 bits


@dataclass(frozen=True)
class Activation:
    """Bytes of an activation on one device, of one micro-batch in one layer.

    `total`, and of it attention scores (`scores`) and the input (`layer_input`). `modules` are the bytes saved if the
    module of that name is recomputed (Megatron's `--recompute-modules`), without names that save none. Those of `moe`
    include those of `moe_act` and `shared_experts`; all others add up.
    """

    total: Fraction
    scores: Fraction
    layer_input: Fraction
    modules: Mapping[str, Fraction]

    @property
    def freed_by_backward(self) -> Fraction:
        """The bytes that B frees before W: scores and one hidden state (arXiv 2401.10241, table 1: 2h + 5as)."""
        return min(self.total, self.scores + self.layer_input)


def layer_activation(
    shape: Shape, training: Training, parallel: Parallel, kind: LayerKind, name: str = "layer"
) -> Activation:
    """Return the activation of one micro-batch in a layer of this kind.

    `name` is that of the layer's type, which says if it is frozen.
    """
    size, own, h = training.precision.number, tokens_of(training, parallel), shape.hidden

    def input_of(part: str, module: str = "") -> Fraction:
        return _input_bytes(training, name, module, training.format_of(part, kind.within))

    whole = own if parallel.sequence else stage_tokens(training, parallel)
    heads, _, _ = head_sizes(shape)
    # The output of the softmax; with dropout a mask of a byte a number, and its output.
    a_score = 0 if training.flash else (2 * size + 1 if training.dropout else size) * heads * training.sequence
    a_score *= kind.attends
    # Inputs of the first products of attention and a mixer, which share one, and of the block.
    mixing = [part for part, has in ((("attention", "linear_qkv"), kind.attends), (("mixer", ""), kind.mixes)) if has]
    of_mixing = _shared_input(training, kind, name, mixing)
    normalized = whole * h * (of_mixing + _block_input(shape, training, kind, name))
    # Inputs of normalizations, and masks of dropout; where they are not fused, inside them also a copy in 32 bits.
    inputs = whole * kind.parts * h * (size + (1 if training.dropout else 0))
    normalized += 0 if training.fused_norms else whole * kind.parts * h * 4
    modules = {"core_attn": own * a_score, "layernorm": normalized}
    mixed = Fraction(0)
    if kind.attends:
        mixed += size * _attention_numbers(shape, training.format_of("attention", kind.within).operand / size)
        if isinstance(shape.attention, LatentAttention):
            modules["mla_up_proj"] = own * size * _assembled(shape.attention)
    if kind.mixes and shape.mixing is not None:
        mixer = shape.mixing.mixer
        mixed += size * mixer.kept + input_of("mixer_output") * mixer.output
    block = Fraction(0)
    if kind.moe and shape.experts is not None:
        experts, down = shape.experts, input_of("experts", "linear_fc2")
        # Of each expert used its input, what it keeps, and its output; the router's probabilities.
        width, inside = experts.latent or h, _feed_forward(shape, experts.ffn, training, down)
        read = input_of("experts", "linear_fc1")
        block = experts.per_token * (width * read + inside + width * size) + (2 * size * (experts.latent or 0))
        shared = experts.shared * _feed_forward(shape, experts.ffn, training, input_of("shared_experts", "linear_fc2"))
        modules |= {
            "moe_act": own * experts.per_token * experts.ffn * down,
            "moe": own * (block + shared + _LOGIT * experts.number),
        }
        if shared:
            modules["shared_experts"] = own * shared
        block += shared + _LOGIT * experts.number
    elif kind.block:
        block = _feed_forward(shape, shape.ffn, training, input_of("mlp", "linear_fc2"))
        modules["mlp"] = own * block
    total = inputs + normalized + own * (mixed + block + a_score)
    layer_input = whole * h * size
    return Activation(total, own * a_score, layer_input, {name: kept for name, kept in modules.items() if kept})


def head_activation(shape: Shape, training: Training, parallel: Parallel) -> Activation:
    """Return the activation of the head: normalization, projection and logits.

    It is 4·s·b·h·(1 + v/h), section 4.3, with logits in 32 bits; with `Loss.FUSED` they take what activations do. Of
    the projection's input a number takes fewer bytes in a narrower format.
    """
    hidden, number = hidden_bytes(shape, training, parallel), training.precision.number
    read = hidden * min(training.format_of("head").operand / number, Fraction(1))
    size = training.precision.number if training.loss is Loss.FUSED else _LOGIT
    return Activation(hidden + read + logits(shape, training, parallel) * size, Fraction(0), hidden, {})


def logits(shape: Shape, training: Training, parallel: Parallel) -> Fraction:
    """Return the number of logits of a micro-batch on one device: of all the vocabulary with `Loss.GATHERED`.

    With other losses tensor parallel devices divide them.
    """
    gathered = training.loss is Loss.GATHERED
    return (stage_tokens if gathered else tokens_of)(training, parallel) * shape.vocabulary


def loss_bytes(shape: Shape, training: Training, parallel: Parallel) -> Fraction:
    """Return the bytes that the loss needs in its backward, in addition to its activation: logits and their gradients.

    PyTorch's own loss, on all logits, also has them in 32 bits, and gradients of the probabilities.
    """
    number = training.precision.number
    each = {Loss.FUSED: 0, Loss.PARALLEL: number + _LOGIT, Loss.GATHERED: number + 3 * _LOGIT}
    return logits(shape, training, parallel) * each[training.loss]


def mtp_activation(shape: Shape, training: Training, parallel: Parallel) -> Activation:
    """Return the activation of a multi-token prediction layer.

    It consists of a layer, two normalized states and their projection, and a head.
    """
    layer = layer_activation(shape, training, parallel, predicting(shape), "mtp")
    head = head_activation(shape, training, parallel)
    total = layer.total + head.total + 4 * hidden_bytes(shape, training, parallel)
    return Activation(total, layer.scores, layer.layer_input, layer.modules)


def working_bytes(shape: Shape, training: Training, parallel: Parallel) -> Fraction:
    """Return the most bytes that one operation of a layer needs while it runs: gradients of a block's inner states."""
    own, size = tokens_of(training, parallel), training.precision.number
    width = max(shape.ffn if shape.has_dense_blocks else 0, _expert_width(shape))
    return own * size * ((3 if shape.gated else 2) * width + 2 * shape.hidden)


def _expert_width(shape: Shape) -> int:
    return 0 if shape.experts is None else (shape.experts.per_token + shape.experts.shared) * shape.experts.ffn


def _attention_numbers(shape: Shape, last: Fraction) -> Fraction:
    """Return the numbers that attention keeps for each token: queries, keys, values, output's input, and latents.

    Of the output's input a number counts as `last`, at most 1.
    """
    attention, last = shape.attention, min(last, Fraction(1))
    if isinstance(attention, Attention):
        gate = 2 * attention.heads if attention.gated else 0  # it, and what it multiplies
        normalized = attention.heads + attention.kv_heads if attention.normalized else 0
        own = (1 + last) * attention.heads + 2 * attention.kv_heads + gate + normalized
        return attention.head_size * own
    latents = 2 * (attention.query_rank or 0) + 2 * attention.kv_rank + attention.rope_size
    return latents + _assembled(attention) + last * attention.heads * attention.value_size


def _assembled(attention: LatentAttention) -> int:
    """Return the number of query, key and value entries of all heads that are computed from the latents."""
    return attention.heads * (2 * (attention.key_size + attention.rope_size) + attention.value_size)


def _block_input(shape: Shape, training: Training, kind: LayerKind, name: str) -> Fraction:
    """Return the bytes kept of a number of the input of a layer's block.

    The input of chosen experts is counted with what these keep.
    """
    if not kind.block:
        return Fraction(0)
    parts = [("mlp", "linear_fc1")]
    if kind.moe and shape.experts is not None:
        parts = [("router", "")]
        parts += [("shared_experts", "linear_fc1")] if shape.experts.shared else []
        parts += [("latents", "")] if shape.experts.latent else []
    return _shared_input(training, kind, name, parts)


def _shared_input(training: Training, kind: LayerKind, name: str, readers: Sequence[tuple[str, str]]) -> Fraction:
    """Return the bytes kept of a number that the products of several parts read, a copy for each of their formats.

    `readers` are these parts, each with Megatron-Core's name of the product.
    """
    found: dict[Format, Fraction] = {}
    for part, module in readers:
        own = training.format_of(part, kind.within)
        found[own] = max(found.get(own, Fraction(0)), _input_bytes(training, name, module, own))
    return sum(found.values(), Fraction(0))


def _input_bytes(training: Training, name: str, module: str, format: Format) -> Fraction:
    """Return the bytes per number that are kept of a product's input, which the gradients of its weights read.

    A frozen product keeps none, except what its adapter reads, in the format of activations. `name` is the name of the
    layer's type, `module` Megatron-Core's name of the product (empty: it has no adapter), `format` the product's
    format.
    """
    size, lora = training.precision.number, training.lora
    if not training.is_frozen(name):
        return min(format.operand, Fraction(size))
    adapted = lora is not None and not training.is_named(name) and module in lora.modules
    return Fraction(size if adapted else 0)


def _feed_forward(shape: Shape, ffn: int, training: Training, down: Fraction) -> Fraction:
    """Return the bytes that a feed-forward block keeps for each token: outputs of projections up, which are the input
    of the activation function, and `down` for each number of the input of the one down.

    `ffn` is the width of the block.
    """
    up = (2 if shape.gated else 1) * training.precision.activation_input_bytes
    between = training.precision.number if shape.gated and not training.fused_activation else 0
    return ffn * (up + between + down)
