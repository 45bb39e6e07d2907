"""Evidence of bounds by relaxed decision diagrams: which relaxation a check replays. All numbers are exact."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar


@dataclass(frozen=True)
class Diagram:
    """A relaxed decision diagram over the orders of some stages' passes.

    Labels are the times of a partial order, states how far its micro-batches have come. Time 0 is the start of the
    chain's first forward. Where the chain's first stage is kept, the bound is the end of all kept work of its device
    (of all kept devices for the makespan); where it is not, the last gradient's start, the way back, and what is left
    of the first stage's backward.
    """

    form: ClassVar[str] = "decision diagram"
    # Stages kept, in the order of their chain; its other stages are delays.
    stages: tuple[int, ...]
    # Most labels of a state, of which others are merged; None: none is merged.
    width: int | None = None
    # Labels that must end at so many ticks or later are left out.
    below: int | None = None
    # Stages whose completion bound says which these are: the same or some of them; none: nothing is left out.
    guide: tuple[int, ...] = ()
    # A forward and a gradient of a device may run as one block.
    blocks: bool = False
    # Of how many units of the problem's time `below` counts ticks; None: the problem's own.
    tick: Fraction | None = None
