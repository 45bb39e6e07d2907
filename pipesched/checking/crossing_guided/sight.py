"""What follows in orders of fewer stages, as it is seen from orders of more."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pipesched.checking.crossing_below.rest import FOREVER, Small, key_weights, what_follows
from pipesched.checking.crossing_stages.argument import Kept
from pipesched.checking.crossing_steps.argument import Numbers, Way
from pipesched.checking.finding import NotCoveredError
from pipesched.problem.problem import Problem


class Sight(NamedTuple):
    """What follows each of the times in orders of the fewer stages, by how far they have come.

    `steps` are theirs among those of more stages, `weights` those of a key, `alone` when the last one of them before
    each step of a micro-batch and its last step of all end, one from the other, if it waits nowhere. `columns` are
    the times of devices that count. What follows is added to times that are earlier by `sooner`. Those that have run n
    steps are from `at[n]` to before `at[n + 1]`.
    """

    steps: Numbers
    weights: Numbers
    alone: Numbers
    columns: Numbers
    admitted: int
    sooner: int
    at: Numbers
    keys: Numbers
    follows: Small


def sight_of(problem: Problem, kept: Kept, guide: Kept, stages: tuple[int, ...], fewer: tuple[int, ...]) -> Sight:
    """Of fewer of the stages."""
    way, small = kept.way, guide.way
    longest = small.microbatches * int(small.ticks.sum() + small.after.sum() + small.before.sum())
    if longest >= FOREVER:
        raise NotCoveredError("numbers of too many digits")
    steps = np.array([n for n, stage in enumerate((*stages, *stages[::-1])) if stage in fewer], np.int64)
    ahead = what_follows(small, np.full((len(fewer), len(small.ticks)), -1, np.int64), makespan=False)
    ends = np.cumsum(way.before + way.ticks)
    starts = int(ends[steps[0]] - way.ticks[steps[0]])
    return Sight(
        steps=steps,
        weights=key_weights(small),
        alone=_alone(way, steps, ends),
        columns=_columns(problem, stages, fewer, way.admitted),
        admitted=small.admitted,
        sooner=starts + kept.beside - guide.beside,
        at=np.append(0, np.cumsum([len(one.keys) for one in ahead])),
        keys=np.concatenate([one.keys for one in ahead]),
        follows=np.concatenate([one.follows for one in ahead]),
    )


def _alone(way: Way, steps: Numbers, ends: Numbers) -> Numbers:
    """By how many steps of all a micro-batch has run: the time since the last one that the fewer stages have."""
    found = np.zeros(len(way.ticks) + 1, np.int64)
    for n, end in enumerate(ends):
        before = steps[steps <= n]
        found[n + 1] = end - ends[before[-1]] if len(before) else 0
    return found


def _columns(problem: Problem, stages: tuple[int, ...], fewer: tuple[int, ...], admitted: int) -> Numbers:
    """For when each device of the fewer stages can start, and for when it would have run all, the times of all stages.

    If other stages of the device are among all, what they would still run is not what the fewer would: then, that it
    can start no later.
    """
    where = problem.placement.stage_device
    devices = [None, *dict.fromkeys(where[stage] for stage in stages)]
    free, whole = list[int](), list[int]()
    for one in (None, *dict.fromkeys(where[stage] for stage in fewer)):
        column = admitted + devices.index(one)
        other = any(where[stage] == one and stage not in fewer for stage in stages)
        free.append(column)
        whole.append(column if other else column + len(devices))
    return np.array(free + whole, np.int64)
