"""The sections `model` and `hardware` of a plan file, from which its layers are derived."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from pipesched.files.fields import field_types
from pipesched.files.fields.data_bandwidth import DataBandwidth
from pipesched.files.fields.field import field, list_of, one_or_list, or_list, whole_number
from pipesched.files.fields.section import Section
from pipesched.files.plans.features.catalogue import with_features
from pipesched.files.plans.fields import ShareField
from pipesched.layers.derived.mixer_kinds import KINDS
from pipesched.layers.derived.precision import PRECISIONS
from pipesched.layers.derived.shape import LETTERS, Loss, Sharding
from pipesched.layers.recompute_rule import FULL, MODULES

_PARTS = ", ".join(f"{letter} {name}" for letter, name in LETTERS.items())
_A_MODE = f"full, selective, or some of {', '.join(MODULES)} joined by +"


def _mode(value: object) -> str | None:
    known = isinstance(value, str) and (value in (*FULL, "selective") or {*value.split("+")} <= {*MODULES})
    return str(value) if known else None


def _modes(value: object) -> list[str] | None:
    return [] if value == [] else list_of(_mode, _A_MODE)(value)


_MODES = field(f"a list of {_A_MODE}", _modes, {"type": "array", "items": {"type": "string"}})


_FULL_LAYERS = field(
    "a whole number of at least 1, or a list of layers, numbered from 0",
    one_or_list(whole_number(0), "a whole number of at least 0"),
    or_list({"type": "integer", "minimum": 0}),
)


class AttentionSection(Section):
    """Sizes of a head; with kv_rank it is multi-head latent attention. `window` or `chunk`: to near tokens alone."""

    required = ("heads",)

    heads: field_types.Count | None = Field(None, description="query heads")
    kv_heads: field_types.Count | None = Field(None, description="key and value heads; default: as many as heads")
    head_size: field_types.Count | None = Field(None, description="numbers of a head; default hidden / heads")
    query_rank: field_types.Count | None = Field(None, description="rank of the queries' latent; default: no latent")
    kv_rank: field_types.Count | None = Field(None, description="rank of the keys' and values' latent")
    key_size: field_types.Count | None = Field(None, description="numbers of a key from the latent, without position")
    rope_size: field_types.Count | None = Field(None, description="numbers of a key with the position")
    value_size: field_types.Count | None = Field(None, description="numbers of a value")
    gated: field_types.YesOrNo = Field(
        False, description="a product of the input multiplies what attention gives (Qwen3-Next); default false"
    )
    normalized: field_types.YesOrNo = Field(
        False, description="queries and keys of each head are normalized, and counted so; default false"
    )
    window: field_types.Count | None = Field(
        None, description="tokens, the last ones, that a token attends to, itself among them; default: all before it"
    )
    chunk: field_types.Count | None = Field(
        None, description="tokens of a chunk, to whose own tokens a token attends; default: no chunks"
    )
    full_layers: Annotated[int | list[int], _FULL_LAYERS] | None = Field(
        None,
        description="layers in which a token attends to all before it, in spite of window or chunk: one in so many, "
        "the last of each, or a list of layers numbered from 0; default: none",
    )


class MixerSection(Section):
    """A mixer of tokens, in some layers in place of attention: state spaces, or linear attention."""

    required = ("kind", "heads", "key_size")

    kind: Annotated[str, field_types.one_of(*KINDS)] | None = Field(
        None,
        description="mamba1, mamba2 (state spaces), gated_delta (gated delta net), kimi_delta (Kimi's delta attention) "
        "or lightning (lightning attention)",
    )
    heads: field_types.Count | None = Field(None, description="heads of values; of mamba1 channels")
    key_heads: field_types.Count | None = Field(
        None, description="heads of keys and queries, of mamba2 groups of B and C; default: as many as heads"
    )
    key_size: field_types.Count | None = Field(None, description="numbers of a key, of Mamba those of a state")
    value_size: field_types.Count | None = Field(
        None, description="numbers of a value; default those of a key, of mamba1 one"
    )
    convolution: field_types.Natural = Field(4, description="tokens that the short convolution reaches; default 4")
    chunk: field_types.Count | None = Field(
        None, description="tokens of a chunk of the scan; default: mamba2 128, delta 64, lightning 256"
    )
    rank: field_types.Count | None = Field(
        None, description="of mamba1's steps, required there, and of kimi_delta's gates, default value_size"
    )
    normalized: field_types.YesOrNo = Field(
        True, description="of mamba2 what the last product reads, of mamba1 steps, B and C are normalized; default true"
    )
    attention_layers: Annotated[int | list[int], _FULL_LAYERS] | None = Field(
        None,
        description="layers with attention in the mixer's place: one in so many, the last of each, or a list of layers "
        "numbered from 0; default: none",
    )
    parallel: field_types.YesOrNo = Field(
        False, description="all layers have both, side by side, and add their results (Falcon-H1); default false"
    )


class ExpertsSection(Section):
    """A mixture of experts in the layers after the dense ones."""

    required = ("number", "per_token", "ffn")

    number: field_types.Count | None = Field(None, description="experts of a layer")
    per_token: field_types.Count | None = Field(None, description="experts that a token uses, shared ones apart")
    shared: field_types.Natural = Field(0, description="experts that every token uses; default 0")
    ffn: field_types.Count | None = Field(None, description="width of one expert")
    groups: field_types.Count = Field(1, description="groups of consecutive experts; default 1")
    groups_per_token: field_types.Count = Field(
        1, description="groups that a token's experts are in, to reach fewer nodes; default 1"
    )
    latent: field_types.Count | None = Field(
        None, description="numbers of a token that experts work on (Nemotron 3 Super); default: the hidden size"
    )
    biased: field_types.YesOrNo = Field(True, description="the router has a bias for each expert; default true")
    shared_gate: field_types.YesOrNo = Field(
        False, description="a product with one column weighs the shared experts; default false"
    )


class ParallelSection(Section):
    """The key `model.parallel`: sizes of parallelism of the devices of one stage."""

    tensor: field_types.Count = Field(1, description="tensor parallel size; default 1")
    context: field_types.Count = Field(1, description="context parallel size; default 1")
    expert: field_types.Count = Field(1, description="expert parallel size, of tensor * context * data; default 1")
    data: field_types.Count = Field(1, description="data parallel size; default 1")
    sequence: field_types.YesOrNo = Field(
        True, description="tensor parallel devices share tokens between products (sequence parallelism); default true"
    )
    sharding: Annotated[str, field_types.one_of(*Sharding)] | None = Field(
        None, description="what data parallel devices share, with all before it (ZeRO 0 to 3); default optimizer"
    )
    sharded_optimizer: field_types.YesOrNo = Field(True, description="false: sharding is none")


class ModelKeys(Section):
    """A decoder: dense layers, layers with experts, multi-token prediction."""

    required = ("layers", "hidden", "vocabulary", "attention", "sequence")

    layers: field_types.Count | None = Field(None, description="transformer layers, dense and with experts")
    hidden: field_types.Count | None = Field(None, description="hidden size")
    vocabulary: field_types.Count | None = Field(None, description="tokens of the vocabulary")
    attention: AttentionSection | None = None
    mixer: MixerSection | None = None
    pattern: field_types.Text | None = Field(
        None,
        description=f"a letter for each layer that has one part alone ({_PARTS}), as in Megatron's "
        "--hybrid-layer-pattern; default: each layer has attention or a mixer, and a block",
    )
    ffn: field_types.Count | None = Field(None, description="width of the feed-forward block of a dense layer")
    gated: field_types.YesOrNo = Field(True, description="two projections up and one down (SwiGLU), not one of each")
    dense_layers: field_types.Natural | None = Field(
        None, description="the first layers, without experts; default: 0 with experts"
    )
    experts: ExpertsSection | None = None
    experts_every: field_types.Count = Field(
        1, description="after the first, dense layers, one layer in so many has experts, the first of them; default 1"
    )
    mtp_layers: field_types.Natural = Field(0, description="multi-token prediction layers; default 0")
    tied: field_types.YesOrNo = Field(False, description="the head has the embedding's parameters")
    sequence: field_types.Count | None = Field(None, description="tokens of a sequence")
    max_position_embeddings: field_types.Count | None = Field(
        None, description="tokens of the longest sequence in the model's own configuration; settings raise it if needed"
    )
    microbatch_size: field_types.Count = Field(1, description="sequences of a micro-batch on one device; default 1")
    dtype: Annotated[str, field_types.one_of(*PRECISIONS)] = Field(
        "bf16", description="of parameters and activations in a pass; below 16 bits of what products read"
    )
    flash: field_types.YesOrNo = Field(True, description="attention scores are never stored (FlashAttention)")
    dropout: field_types.YesOrNo = Field(
        False, description="dropout after attention and feed-forward block, and on the scores"
    )
    fused_experts: field_types.YesOrNo = Field(
        False,
        description="products of experts have the activation function, and the conversion of its result to a narrow "
        "format, in their kernels; default false",
    )
    fused_norms: field_types.YesOrNo = Field(
        True, description="a normalization is one kernel; else several, in 32 bits, as in eager PyTorch; default true"
    )
    fused_activation: field_types.YesOrNo = Field(
        True, description="so are a gated activation function and its product with the other half; default true"
    )
    fused_accumulation: field_types.YesOrNo = Field(
        True,
        description="products add to the gradients of earlier micro-batches; else kernels after them; default true",
    )
    loss: Annotated[str, field_types.one_of(*map(str, Loss))] = Field(
        "parallel",
        description="logits that the loss keeps: fused (16 bits, one kernel), parallel (32 bits, on each tensor "
        "parallel device a part of the vocabulary; the default), gathered (32 bits, all of them)",
    )
    weight_bytes: field_types.Count | None = Field(
        None, description="of a weight of layers; default that of activations; 1: kept in 8 bits (--fp8-param-gather)"
    )
    activation_input_bytes: field_types.Count | None = Field(
        None,
        description="of a number of the activation function's input, kept for the backward; default that of "
        "activations; 1: kept in 8 bits (activation_func_fp8_input_store)",
    )
    gradient_bytes: field_types.Count | None = Field(None, description="of a gradient; default 4")
    reduction_bytes: field_types.Count | None = Field(
        None,
        description="of a gradient as sharded gradients are reduced (reduce_dtype of PyTorch's FSDP); default that of "
        "activations; 4: in 32 bits",
    )
    optimizer_bytes: field_types.Count | None = Field(
        None, description="of the optimizer's state a parameter; default 12 (Adam: weight, two moments), fp32 8"
    )
    recompute: Annotated[list[str], _MODES] | None = Field(
        None,
        description="ways in which layers may be recomputed: full, or Megatron's modules joined by +; default full, "
        "and selective where scores are stored; [] for none",
    )
    early_stop: field_types.YesOrNo = Field(
        False,
        description="recomputation of a whole layer stops before its last product, which no backward reads (PyTorch's "
        "checkpoints that are not reentrant, XLA); Megatron runs it again; default false",
    )
    weight_split: field_types.YesOrNo = Field(True, description="backwards may run as B and a later W")
    parallel: ParallelSection | None = None


if TYPE_CHECKING:
    ModelSection = ModelKeys
else:
    ModelSection = with_features("ModelSection", "model", ModelKeys)


class HardwareSection(Section):
    """The key `hardware`: rates and memory of one device."""

    required = ("sustained_tflops", "memory", "pipeline_bandwidth")

    name: field_types.Text | None = Field(
        None, description="of the device, by which published measurements say how large an error to expect"
    )
    sustained_tflops: field_types.PlainNumber | None = Field(
        None, description="10^12 operations a second that large products reach, as measured; not the peak"
    )
    product_tflops: field_types.PlainNumber | None = Field(
        None, description="the same of products in a dtype below 16 bits; default sustained_tflops"
    )
    product_tflops_8bit: field_types.PlainNumber | None = Field(
        None, description="the same of parts in fp8 or mxfp8 (model.precision), where dtype is not one of them"
    )
    product_tflops_4bit: field_types.PlainNumber | None = Field(
        None, description="the same of parts in nvfp4 (model.precision), where dtype is another"
    )
    attention_tflops: field_types.PlainNumber | None = Field(
        None, description="the same of attention; default sustained_tflops"
    )
    scan_tflops: field_types.PlainNumber | None = Field(
        None,
        description="the same of the scans of a mixer; default 43 % of attention_tflops, as of Mamba 2 on an H100",
    )
    multiprocessors: field_types.Natural = Field(
        0, description="of a device, which run tiles of products in waves; default 0, products of all sizes at one rate"
    )
    memory_bandwidth: field_types.PlainNumber | None = Field(
        None,
        description="GB/s of the device's memory; without it normalizations, activation functions and the optimizer's "
        "step are not counted",
    )
    dense_launch: field_types.PlainNumber = Field(
        Fraction(0),
        description="ms that a forward of a dense layer takes at least, to launch its kernels, and a backward twice; "
        "default 0",
    )
    moe_launch: field_types.PlainNumber = Field(
        Fraction(0),
        description="ms that a forward of a layer with experts takes at least, and a backward twice; default 0",
    )
    moe_wait: field_types.PlainNumber = Field(
        Fraction(0),
        description="ms that each pass of a layer with experts waits while its host reads how many tokens each expert "
        "gets and launches the kernels for them; 0 with CUDA graphs; default 0",
    )
    node: field_types.Count | None = Field(
        None,
        description="devices of a node; with expert_node_bandwidth tokens go between nodes and inside them; required "
        "with data_bandwidth by nodes",
    )
    expert_node_bandwidth: field_types.PlainNumber | None = Field(
        None, description="GB/s of a device to experts in its node; expert_bandwidth is then that to other nodes"
    )
    dispatch: Annotated[str, field_types.one_of("node", "expert")] = Field(
        "node",
        description="a token goes to another node once for all its experts there, or once for each; default node",
    )
    memory: field_types.Number | None = Field(None, description="GiB")
    reserved: field_types.Number | None = Field(
        None, description="GiB of it for all that is not counted: working space, communication; default 0"
    )
    pipeline_bandwidth: field_types.PlainNumber | None = Field(None, description="GB/s of a device to the next stage")
    tensor_bandwidth: field_types.PlainNumber | None = Field(
        None, description="GB/s of a device inside its tensor group"
    )
    expert_bandwidth: field_types.PlainNumber | None = Field(
        None, description="GB/s of a device to the experts elsewhere"
    )
    data_bandwidth: DataBandwidth | None = Field(
        None,
        description="GB/s of a device to those with the same parameters, or the bus bandwidth of all-reduce among all "
        "devices of so many nodes, such as {1: 436, 4: 160}, with node; without it the exchange of gradients is not "
        "counted",
    )
    context_bandwidth: field_types.PlainNumber | None = Field(
        None,
        description="GB/s of a device to the next one of its context group; without it the exchange of keys and "
        "values is hidden behind computation",
    )
    data_hidden_share: ShareField = Field(
        Fraction(0),
        description="part of a backward behind which gradients are reduced; default 0",
    )
    gather_hidden_share: ShareField | None = Field(
        None,
        description="part of the next forward behind which weights are gathered (Megatron's --overlap-param-gather); "
        "default that of data_hidden_share",
    )
    hidden_share: ShareField = Field(
        Fraction(0), description="part of tensor and expert parallel exchange that runs behind computation; default 0"
    )
