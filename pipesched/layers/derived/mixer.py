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
    """Work for each token of all heads that carries the state along the sequence, in the forward.

    `operations` are those of small matrix products, `elementwise` those outside them, `exponentials` a number of these.
    A backward computes `repeated` of the operations again, besides two products for each. Of the operations `chained`
    run along the sequence, one chunk after the other, in `chains` of each sequence at a time.
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

    `projections` are its matrix products, the one of its output last. `vectors` are parameters outside them that tensor
    parallelism divides (convolution, decays, gains), `norms` those that it does not. For each token kernels between the
    products read or write `moved` numbers of 16 bits, and `kept` are kept for the backward, besides the input of the
    last product. Context parallelism exchanges `sent` numbers of a token for the others' of a device's own heads before
    the scan, and those of the last product's input after it (`megatron/core/ssm/mamba_context_parallel.py`).
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
        """The numbers of a token that the last product reads."""
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
