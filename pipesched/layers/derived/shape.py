"""A transformer's shape, how its training is spread over devices, and what those devices do a second."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple


@dataclass(frozen=True)
class Attention:
    """Multi-head or grouped-query attention; sizes of a head. Queries, keys and values are projections of the input."""

    heads: int
    kv_heads: int
    head_size: int


@dataclass(frozen=True)
class LatentAttention:
    """Multi-head latent attention (DeepSeek-V2, arXiv 2405.04434): queries, keys and values from low-rank latents.

    A head's query and key are `key_size` numbers from the latent and `rope_size` with the position, its value has
    `value_size`. `query_rank` is None where queries come from the input itself.
    """

    heads: int
    query_rank: int | None
    kv_rank: int
    key_size: int
    rope_size: int
    value_size: int


@dataclass(frozen=True)
class Experts:
    """A mixture of experts in place of a feed-forward block; `ffn` is the width of one, shared ones included."""

    number: int
    per_token: int
    shared: int
    ffn: int


@dataclass(frozen=True)
class Shape:
    """A decoder: `dense_layers` layers with a feed-forward block of width `ffn` first, then those with experts.

    `gated`: two projections up and one down (SwiGLU), else one of each. `mtp_layers` are multi-token prediction layers
    (arXiv 2412.19437, section 2.2); `tied`: the head has the embedding's parameters.
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


class Precision(NamedTuple):
    """Bytes of a number that is computed with, as weights are; of a gradient; of the optimizer's state (Adam)."""

    number: int
    gradient: int
    optimizer: int


# 16-bit formats: a 16-bit weight, a 32-bit gradient; a 32-bit weight and two moments in the optimizer.
PRECISIONS = {"bf16": Precision(2, 4, 4 + 8), "fp16": Precision(2, 4, 4 + 8), "fp32": Precision(4, 4, 8)}


@dataclass(frozen=True)
class Training:
    """What a micro-batch is and what its passes keep. `microbatch_size` counts sequences of `sequence` tokens.

    `flash`: attention scores are never stored (arXiv 2205.14135). `weight_split`: W may run later than B.
    """

    sequence: int
    microbatch_size: int = 1
    precision: Precision = PRECISIONS["bf16"]
    flash: bool = True
    dropout: bool = False
    weight_split: bool = True


@dataclass(frozen=True)
class Parallel:
    """How the devices of one stage share its work: sizes of tensor, context, expert and data parallelism.

    Expert parallelism takes its devices from the other three (`tensor * context * data` of them), whole experts each.
    """

    tensor: int = 1
    context: int = 1
    expert: int = 1
    data: int = 1
    sharded_optimizer: bool = True

    @property
    def devices(self) -> int:
        """Devices that hold one stage together."""
        return self.tensor * self.context * self.data


@dataclass(frozen=True)
class Hardware:
    """One device: operations a second that it sustains, its memory in bytes, and bytes a second that it sends.

    `pipeline` is the link to the next stage, `tensor`, `expert`, `data` and `context` those of the collectives; None
    where there are none, or where those of `data` and `context` are not counted. `hidden` is the share of the exchanges
    of tensors and experts that runs behind computation and takes no time of its own.
    """

    sustained_flops: Fraction
    memory: Fraction
    pipeline: Fraction
    tensor: Fraction | None = None
    expert: Fraction | None = None
    hidden: Fraction = Fraction(0)
    data: Fraction | None = None
    context: Fraction | None = None
