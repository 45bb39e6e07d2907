"""What remains after the steps of some stages, looked up for orders of the steps of more stages of a chain.

An order of the steps of more stages has an order of the steps of fewer of them in it. What remains after that one
remains after the whole order: its micro-batches have come so far on the fewer stages, and what has passed on their way
since is taken from their times.
"""

from __future__ import annotations

from collections.abc import Sequence
from threading import Event
from typing import NamedTuple

import numpy as np

from pipesched.problem.problem import Problem
from solver.bounds.analytic.critical_paths import Paths
from solver.bounds.crossing_below.remaining import Remaining, Short, remaining
from solver.bounds.crossing_blocks.blocks import block_ticks
from solver.bounds.crossing_stages.stages import KeptStages, devices_of, steps_of_stages
from solver.bounds.crossing_steps.steps import Numbers


class Fewer(NamedTuple):
    """Some stages of a chain, their steps, and what remains after each of their states."""

    stages: tuple[int, ...]
    kept: KeptStages
    rest: Remaining


class Guide(NamedTuple):
    """The states of fewer stages with what remains after each, and where they are found from those of more stages.

    By steps done of more stages: how many of these are steps of the fewer ones (`passed`), and how long after the last
    of those the last step of a micro-batch alone ends (`behind`). By steps done of the fewer: their part of a `key`.
    `times` are the places, behind the micro-batches, of the times of more stages for those of devices of the fewer.
    What remains is added to times that are less by `later` than those of more stages. States of layer n, `done` n
    steps, are those from `since[n]` to before `since[n + 1]`.
    """

    passed: Numbers
    behind: Numbers
    key: Numbers
    times: Numbers
    steps: int
    in_flight: int
    later: int
    since: Numbers
    keys: Numbers
    rests: Short


def guide_of(problem: Problem, kept: KeptStages, stages: Sequence[int], rest: Fewer) -> Guide:
    """The guide by what remains after fewer of the `stages` that are kept."""
    fewer, small = rest.stages, rest.kept
    within = np.array([stage in fewer for stage in (*stages, *reversed(stages))])
    ends = np.cumsum(kept.steps.lag + kept.steps.ticks)
    last = np.maximum.accumulate(np.where(within, ends, 0))
    first = int(kept.steps.lag[: stages.index(fewer[0]) + 1].sum() + kept.steps.ticks[: stages.index(fewer[0])].sum())
    return Guide(
        passed=np.append(0, np.cumsum(within)),
        behind=np.append(0, np.where(np.cumsum(within) > 0, ends - last, 0)),
        key=np.append(np.cumsum(np.append(0, small.steps.place[1:])), 0),
        times=_times(problem, stages, fewer),
        steps=len(small.steps.ticks),
        in_flight=small.steps.in_flight,
        later=first + kept.beside - small.beside,
        since=np.append(0, np.cumsum([len(layer.keys) for layer in rest.rest.layers])),
        keys=np.concatenate([layer.keys for layer in rest.rest.layers]),
        rests=np.concatenate([layer.rests for layer in rest.rest.layers]),
    )


def fewer_of(
    problem: Problem, chain: Sequence[int], stages: tuple[int, ...], numbers: int, stop: Event
) -> Fewer | None:
    """A pass backwards over some stages; None where it has more than so many numbers, or after a stop."""
    kept = steps_of_stages(problem, Paths(problem), chain, stages)
    if kept is None:
        return None
    rest = remaining(kept.steps, block_ticks(problem, stages, devices_of(problem, stages)), numbers, stop)
    return rest and Fewer(stages, kept, rest)


def _times(problem: Problem, stages: Sequence[int], fewer: Sequence[int]) -> Numbers:
    """Places of the times of the fewer stages' devices among those of all: when each can start, when it has run all.

    The latter only where both have the same stages of the device; else it can start no later than it has run all.
    """
    where = problem.placement.stage_device
    # Device 0 of the steps is none, which has no stage.
    own, few = (0, *(1 + one for one in devices_of(problem, stages))), (0, *(1 + n for n in devices_of(problem, fewer)))
    free = [own.index(one) for one in few]
    same = [all(stage in fewer for stage in stages if 1 + where[stage] == one) for one in few]
    return np.array([*free, *(n + len(own) if alike else n for n, alike in zip(free, same, strict=True))], np.int64)
