"""Evidence of bounds by crossings: which orders a check has to try. All numbers are exact.

Where orders are not followed that must end at `below` or later, that is in ticks of `tick` units of the problem's time;
None, in files of older versions: in the problem's own ticks. `form` names each in files.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, get_args


@dataclass(frozen=True)
class CrossingSteps:
    """The chain that begins with a stage, and some of its devices, on which all orders of its steps are tried.

    Of those that have come equally far at most `width` are kept distinct.
    """

    form: ClassVar[str] = "crossings of steps"
    stage: int
    devices: tuple[int, ...]
    width: int


@dataclass(frozen=True)
class CrossingStepsBelow:
    """The same where orders that must end at `below` or later are not followed."""

    form: ClassVar[str] = "crossings of steps below a value"
    stage: int
    devices: tuple[int, ...]
    width: int
    below: int
    tick: Fraction | None = None


@dataclass(frozen=True)
class CrossingStages:
    """As `CrossingStepsBelow` for some stages of a chain, in its order; its other stages are delays."""

    form: ClassVar[str] = "crossings of steps of some stages"
    stages: tuple[int, ...]
    width: int
    below: int
    tick: Fraction | None = None


@dataclass(frozen=True)
class GuidedStages:
    """The same, where only orders are left out of which the stages of the `guide`, some of these, say it."""

    form: ClassVar[str] = "crossings of steps of more stages"
    stages: tuple[int, ...]
    guide: tuple[int, ...]
    width: int
    below: int
    tick: Fraction | None = None


@dataclass(frozen=True)
class CrossingWhole:
    """The chain that begins with a stage, some of its devices, and the value below which its orders are followed.

    With weight passes that run without a break; all orders are kept distinct.
    """

    form: ClassVar[str] = "crossings of steps with whole weight passes"
    stage: int
    devices: tuple[int, ...]
    below: int
    tick: Fraction | None = None


@dataclass(frozen=True)
class CrossingChains:
    """Devices on which all orders of the steps of all chains are tried, and their blocks.

    Of those that have come equally far at most `width` are kept distinct; those that must end at `below` or later
    are not followed.
    """

    form: ClassVar[str] = "crossings of all chains"
    devices: tuple[int, ...]
    width: int
    below: int
    tick: Fraction | None = None


@dataclass(frozen=True)
class CrossingSomeWhole:
    """As `CrossingSteps`, where no weight pass of the `whole` devices is interrupted before `steps` have started.

    In files of earlier versions: no bound of this one has it.
    """

    form: ClassVar[str] = "crossings of steps with some whole weight passes"
    stage: int
    devices: tuple[int, ...]
    width: int
    whole: tuple[int, ...]
    steps: int


@dataclass(frozen=True)
class CrossingBlocks:
    """As `CrossingSteps`, where a forward and a gradient of a device may run as one block: all such ways are tried."""

    form: ClassVar[str] = "crossings with blocks"
    stage: int
    devices: tuple[int, ...]
    width: int


# Those that are read as decision diagrams, by the name of their form, which is also the kind of their certificates.
OldForm = (
    CrossingBlocks
    | CrossingSomeWhole
    | CrossingStages
    | CrossingSteps
    | CrossingStepsBelow
    | CrossingWhole
    | GuidedStages
)
OLD_FORMS: dict[str, type[OldForm]] = {one.form: one for one in get_args(OldForm)}
