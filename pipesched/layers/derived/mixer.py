"""Layers that mix tokens without attention: state spaces and linear attention, as what their formulas need of them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from typing import NamedTuple


class Divided(Enum):
    """The part of a matrix product that tensor parallelism divides: COLUMNS, the INNER size, or nothing but TOKENS."""

    COLUMNS = "columns"
    INNER = "inner"
    TOKENS = "tokens"


class Projection(NamedTuple):
    """A matrix product of every token: `inner` numbers times a matrix of `columns`."""

    inner: int
    columns: int
    divided: Divided = Divided.COLUMNS


class Scan(NamedTuple):
    """Work per token, over all heads, that carries the state along the sequence in the forward.

    `operations` are operations of small matrix products, `elementwise` operations outside of products, `exponentials` a
    number of exponentials. A backward computes `repeated` of the operations again, besides two products for each.
    `chained` of the operations run along the sequence, one chunk after the other, in `chains` parallel chains for each
    sequence; 0 chains if there are none.
    """

    operations: Fraction
    repeated: Fraction
    exponentials: Fraction
    elementwise: Fraction = Fraction(0)
    chained: Fraction = Fraction(0)
    chains: int = 0


@dataclass(frozen=True)
class Mixer:
    """A mixer of tokens with a recurrent state, whose `heads` tensor and context parallelism divide.

    `key_heads` are the heads, or groups, that have keys and queries of their own, which several `heads` may share.
    `projections` are its matrix products, with the output product last. `vectors` are the parameters outside of
    products that tensor parallelism divides (convolution, decays, gains), `norms` the parameters that it does not
    divide. For each token, kernels between the products read or write `moved` numbers of 16 bits, and `kept` numbers
    are kept for the backward, besides the input of the last product. Context parallelism exchanges, for each token,
    `sent` numbers before the scan, so that a device gets all tokens of its own heads, and the input of the last product
    after it (`megatron/core/ssm/mamba_context_parallel.py`).
    """

    name: str
    heads: int
    key_heads: int
    projections: tuple[Projection, ...]
    vectors: int
    norms: int
    scan: Scan
    moved: Fraction
    kept: Fraction
    sent: int

    @property
    def output(self) -> int:
        """The size of a token, in numbers, as the last of `projections`, the output product, reads it."""
        return self.projections[-1].inner

    @property
    def matrices(self) -> int:
        """The number of parameters of the matrix products."""
        return sum(one.inner * one.columns for one in self.projections)


@dataclass(frozen=True)
class Mixing:
    """A mixer, and the layers, numbered from 0, that have attention in its place; with `both` all layers have both."""

    mixer: Mixer
    attention: frozenset[int] = frozenset()
    both: bool = False
