"""The document of a tiny problem as cells, a stage and a micro-batch (or a piece of one) each, and what ties them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, NamedTuple

Document = Mapping[str, Any]
FORWARD, BACKWARD = "forward", "backward"


class Spec(NamedTuple):
    """A task of a pass: its stream, its time, what it waits for."""

    stream: str
    time: Fraction
    after: int | None = None  # of a weight task: the place of its backward task
    needs_input: bool = True
    receives: bool = False


class Recomputation(NamedTuple):
    """Recomputation of an activation: the time, and the amount that is kept meanwhile."""

    time: Fraction
    keeps: Fraction


class Copies(NamedTuple):
    """Moving an activation to the memory of the device `to`, or of the host, and back."""

    out: Fraction
    back: Fraction
    amount: Fraction
    to: int | None


@dataclass(eq=False)
class Cell:
    """The passes of one micro-batch, or piece, on one stage, with their own times and amounts."""

    device: int
    holder: tuple[object, ...]  # whose parameters it computes with
    microbatch: int
    forward: list[Spec]
    backward: list[Spec]
    weight: list[Spec] | None
    fused: list[Spec]
    overlapped: Fraction | None  # a block with its forward
    activation: Fraction
    freed: Fraction
    kept_for_later: Fraction = Fraction(0)
    saves: Fraction | None = None  # what a block with one of its passes takes less than the two in turn, at most
    freed_of_pieces: Fraction = Fraction(0)  # what its backward frees of what other pieces kept for later
    copies: Copies | None = None
    recomputations: list[Recomputation] = field(default_factory=list)
    may_keep: bool = True
    frozen: bool = False
    # Of F, B and W: held while the pass runs, and kept until the end.
    workspace: tuple[Fraction, Fraction, Fraction] = (Fraction(0), Fraction(0), Fraction(0))
    until_end: tuple[Fraction, Fraction, Fraction] = (Fraction(0), Fraction(0), Fraction(0))


def block_time(forward: Cell, backward: Cell) -> Fraction | None:
    """The time of a block of a forward and a full backward; None if they run in turn."""
    if forward.saves is None or backward.saves is None:
        return forward.overlapped
    in_turn = sum((spec.time for spec in (*forward.forward, *backward.fused)), Fraction(0))
    return in_turn - min(forward.saves, backward.saves)


class Tie(NamedTuple):
    """The pass of one cell begins so long after that of another has ended, by the stream that sends if there is one.

    With `both` the other device receives at the same time, by the task of the pass that does.
    """

    one: Cell
    kind: str
    other: Cell
    other_kind: str
    lag: Fraction = Fraction(0)
    stream: str | None = None
    both: bool = False


class Once(NamedTuple):
    """A pass for parameters, once an iteration; of a gathering also the most there may be, and its memory."""

    device: int
    holder: tuple[object, ...]
    reduce: Spec | None
    buckets: int
    step: Spec | None
    gather: Spec | None
    gathered: Fraction
    most: int
    each_microbatch: bool = False  # one reduction after every backward
    trained: bool = True


class Host(NamedTuple):
    """Devices that share the memory of a host."""

    devices: frozenset[int]
    capacity: Fraction


@dataclass
class Shape:
    """All that an exact model has to know."""

    devices: int
    first_stream: str
    cells: list[Cell]
    ties: list[Tie]
    lines: list[list[Cell]]  # whose forwards, and whose backwards, begin in this order
    rooms: list[Fraction | None]
    hosts: list[Host]
    copy_streams: tuple[str, str]
    shared: dict[tuple[str, int], int]  # the device whose stream another one's copies run on
    once: list[Once]
    norm: Spec | None  # of all gradients, on the stream of every device that trains
    most_gathers: int | None
    window: int | None
    span: bool
