"""Evidence of bounds by relaxed decision diagrams: the relaxation that a check has to replay. All numbers are exact."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from pipesched.problem.quantities import DeviceId, StageId


@dataclass(frozen=True)
class Diagram:
    """A relaxed decision diagram over the orders of some stages' passes, for a check to replay.

    The stages are of one chain or several. A state is the progress of the micro-batches, a label the times of a partial
    order. `stages` are the modelled stages, chain by chain; the others are delays. At most `width` labels of a state
    are kept, into which the others are merged (None: none is merged). With `below`, labels that cannot end before so
    many ticks are left out, by completion bounds over the stages in `guide`: over all of these together, or with `rows`
    over the stages of each of their devices by itself, with so many rows for a state. `below` counts ticks of `tick`
    units of the problem's time (None: the problem's own ticks). With `ways` the activation modes are distinguished,
    else each activation takes the least memory of its modes. With `joint`, where stages are tasks, the weight tasks of
    a stage occupy its memory until all of them have ended.

    Time 0 is, for the makespan, the start of the iteration; the ends of all modelled devices count, and the path of
    each chain back to its first stage. For a span with a `device`, that device's time counts from its first modelled
    pass on. For a span without one, the stages are of one chain, and time 0 is the start of the chain's first forward;
    the last path back to the first stage counts, with the remaining work there.
    """

    form: ClassVar[str] = "decision diagram"
    # Stages kept, chain by chain, in the order of each; other stages are delays.
    stages: tuple[StageId, ...]
    # Most labels of a state, of which others are merged; None: none is merged.
    width: int | None = None
    # Labels that must end at so many ticks or later are left out.
    below: int | None = None
    # Stages whose completion bounds say which these are: the same or some of them; none: nothing is left out.
    guide: tuple[StageId, ...] = ()
    # One bound of all these stages together; with a number, of each of their devices by itself so many for a state.
    rows: int | None = None
    # Whose span is bounded.
    device: DeviceId | None = None
    # Of how many units of the problem's time `below` counts ticks; None: the problem's own.
    tick: Fraction | None = None
    # Whether the ways to hold each activation are told apart; else each is held as little as any way allows.
    ways: bool = False
    # Of tasks as stages: whether the weight tasks of a stage hold its memory until all of them have ended; else each
    # gives back its own part.
    joint: bool = False
