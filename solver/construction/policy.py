"""A policy of the list scheduler: its preferences among the passes that could run next."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from solver.parameters import tunable, tuned


@dataclass(frozen=True)
@tunable
class ListParams:
    """Parameters of list scheduling and of the search over its rules."""

    waits: tuple[int, ...] = tuned(
        (0, 25, 50, 100, 200), "percent of a pass, or of what a block saves", 0, 400,
        "waits tried by each policy; leaving out 25 and 200 gave schedules .7 % longer",
    )  # fmt: skip
    first_wait: int = tuned(50, "percent", 0, 400, "the middle one of the waits")
    in_flight: tuple[int | None, ...] = tuned(
        (100, 125, 150, 200, 300, None), "percent of Little's law, None without limit", 100, 1000
    )
    most_extra: int = tuned(3, "micro-batches in flight beyond the share", 0, 10)
    most_changes: int = tuned(3, "random changes of the rules at once", 1, 20)
    most_in_flight_step: int = tuned(3, "micro-batches that a random change adds or removes", 1, 20)
    in_flight_ceiling: int = tuned(3, "times Little's law, where memory sets no limit", 1, 10)
    ranked_runs: int = tuned(200, "random rules by ranks", 1, 10_000)


LISTS = ListParams()


class Policy(NamedTuple):
    """Preferences of one variant of the list scheduler, from which `rules_of` makes the arrays of a run.

    `split`: backwards run as B and W. `patience` is how long a weight pass waits for a gradient or forward to become
    ready, in hundredths of the weight pass. `later_devices_first`: of devices that could start at one time the one of
    highest number is first, else that of lowest. `deepest_first`: of a device's forwards that could start at one time
    the one on the stage of highest number is first, else the one of the earliest micro-batch. `blocks` is how long a
    pass waits for its partner in a block, in hundredths of what the block saves; None forms no blocks. `shares`: the
    stages of a device share its memory by how long they keep an activation. `warm_up`: before its first backward a
    device runs as many forwards as the integral warm-up bound counts.
    """

    split: bool  # run backwards as B and W
    patience: int  # hundredths of a weight pass that it waits for a gradient or forward to become ready
    later_devices_first: bool  # between devices that could start at the same time
    deepest_first: bool  # between forwards: the stage furthest along, rather than the earliest micro-batch
    blocks: int | None = None  # hundredths of what a block saves that a pass waits for its other pass; None for none
    shares: bool = False  # the stages of a device share its memory by how long they hold an activation
    warm_up: bool = False  # before its first backward a device runs so many forwards as integral warm-up counts
