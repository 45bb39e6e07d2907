"""Crossings of steps on the first devices of a long line, where its devices have too many states to keep all of them.

Forwards on their way down and gradients on their way up wait for each other between neighbours. Where round trips
decide, three devices in a row prove more than three that are far from each other.
"""

from __future__ import annotations

from collections.abc import Iterator
from threading import Event

from pipesched.problem.problem import Problem
from pipesched.results.certificate import Certificate
from solver.bounds.analytic.critical_paths import Paths
from solver.bounds.crossing_steps.bound import _certificate, least_value
from solver.bounds.crossing_steps.device_sets import Trial
from solver.bounds.crossing_steps.steps import state_count, steps_of, walked_chains

# Labels looked at in all; labels of a state, and states of all devices up to which all of them are tried elsewhere.
LABELS_IN_A_ROW, _WIDTH, _FEW_STATES = 2_000_000, 64, 1_000_000


def bounds_in_a_row(
    problem: Problem, stop: Event, work: int = LABELS_IN_A_ROW, few_states: int = _FEW_STATES
) -> Iterator[Certificate]:
    """On the first three devices, the first four and so on, while that takes no more than so much work.

    Nothing where a chain comes to a device again, blocks overlap a forward and a backward, or a pass is several tasks.
    """
    if problem.overlaps or problem.network.options or not problem.network.one_task_each:
        return
    best, paths = 0, Paths(problem)
    for chain in walked_chains(problem):
        devices = tuple(dict.fromkeys(problem.placement.stage_device[stage] for stage in chain))
        if len(devices) < len(chain) or state_count(problem, chain, devices) <= few_states:
            continue
        for many in range(3, len(devices)):
            trial = Trial(chain, devices[:many], _WIDTH)
            steps = steps_of(problem, paths, chain, trial.devices)
            if steps is None:
                break
            found = least_value(steps, trial.width, work, stop)
            work -= found.work
            if found.ticks is not None and found.ticks > best:
                best = found.ticks
                yield _certificate(problem, trial, best)
            if work <= 0 or stop.is_set():
                return
