"""Refutes values: CP-SAT finds no schedule as good as that, even if only some devices keep the rules.

A destructive bound (Klein and Scholl, EJOR 112, 1999): asked for a schedule of at most a given value, and not for the
best one, CP-SAT may use the value from the start. A few devices spread over the pipeline, with the others as mere
delays, often refute nearly what all of them do, in a fraction of the time.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from threading import Event
from typing import NamedTuple

from ortools.sat.python import cp_model

from formulations.exact_model import ExactModel, TooLong
from formulations.order import literal_count
from pipesched.errors import Disagreement
from pipesched.problem import Problem
from pipesched.schedule import Schedule
from solver.cp_sat import clauses_alone
from solver.interruptible import run_until
from solver.limits import Limits

# Beyond this many order literals CP-SAT refutes nothing in a minute.
_MOST_LITERALS = 12_000
# The share of what is open between bound and value that is asked for: at first, by how much each success raises it, and
# the least. What is near the bound takes almost as long to refute as what is halfway up.
_SHARE, _BOLDER, _LEAST_SHARE = 0.5, 1.5, 0.03
# Share of the time that an attempt gets.
_EFFORT = 0.3


class Refuted(NamedTuple):
    """No schedule is below `value` ticks, not even if only these `devices` run one pass at a time within memory.

    The others run passes of one kind and stage in turn, and any others at once.
    """

    value: int
    devices: Sequence[int]


def refutations(
    problem: Problem, limits: Limits, seconds: float, known: Callable[[], tuple[int, int]], stop: Event
) -> Iterator[Refuted | Schedule]:
    """Ever better bounds, and a schedule wherever all devices together have one after all.

    `known` gives what is proved by now and the value to stay below, in ticks; it ends when the two meet, when told to
    stop, or out of time.
    """
    spent, started = 0.0, time.monotonic()
    whole = seconds if limits.deterministic is None else limits.deterministic
    groups, share = _groups(problem), _SHARE
    proved, found = 0, None

    def left() -> float:
        return whole - (time.monotonic() - started if limits.deterministic is None else spent)

    while groups and not stop.is_set():
        low, below = known()
        # What was handed over may not have been heard yet.
        low, below = max(low, proved), below if found is None else min(below, found)
        if left() <= 0 or low >= below:
            return
        value = min(below - 1, low + int(share * (below - low)))
        try:
            model = ExactModel(problem, value, low, devices=groups[0])
        except TooLong:
            return
        # Stating the model takes time of its own.
        if left() <= 0 or stop.is_set():
            return
        solver = _solver(limits, min(_EFFORT * whole, left()))
        status = run_until(stop, partial(solver.solve, model.cp), solver.stop_search)
        spent += solver.response_proto.deterministic_time
        has_one = status in (cp_model.OPTIMAL, cp_model.FEASIBLE)
        if status == cp_model.MODEL_INVALID:
            raise Disagreement(f"CP-SAT rejects the model: {model.cp.validate()}")
        if status == cp_model.INFEASIBLE:
            proved = value + 1
            yield Refuted(proved, groups[0])
            share = min(1.0, _BOLDER * share)
        elif has_one and len(groups) > 1:
            # It takes more devices to refute this.
            groups = groups[1:]
        elif has_one and len(groups[0]) == problem.devices:
            found = value + 1
            yield model.decode(solver.value)
        elif share <= _LEAST_SHARE:
            return
        else:
            share = max(_LEAST_SHARE, share / 2)


def _solver(limits: Limits, effort: float) -> cp_model.CpSolver:
    """One worker, which stops at the first schedule."""
    solver = cp_model.CpSolver()
    parameters = solver.parameters
    parameters.num_workers, parameters.random_seed = 1, limits.seed
    parameters.stop_after_first_solution = True
    parameters.catch_sigint_signal = False
    clauses_alone(parameters)
    if limits.deterministic is None:
        parameters.max_time_in_seconds = max(0.01, effort)
    else:
        parameters.max_deterministic_time = effort
    return solver


def _groups(problem: Problem) -> list[list[int]]:
    """Half of the devices, every other along the pipeline, or fewer if they have too many literals; then all of them.

    Only all of them where an overlapped block could be shorter than its passes.
    """
    placement, devices = problem.placement, problem.devices
    along = list(dict.fromkeys([*(placement.stage_device[stage] for stage in placement.chains[0]), *range(devices)]))
    steps = [step for step in (2, 4, 8, 16, 32) if step < devices and problem.costs.overlapped is None]

    def small(group: list[int]) -> bool:
        return literal_count(problem, group) <= _MOST_LITERALS

    some = next((group for group in (sorted(along[::step]) for step in steps) if small(group)), None)
    return [group for group in (some, sorted(along)) if group is not None and (group is some or small(group))]
