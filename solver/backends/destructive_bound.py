"""Destructive lower bounds: CP-SAT proves that no schedule of at most a given value exists, on some or all devices.

A destructive bound (Klein and Scholl, EJOR 112, 1999) asks for feasibility at a given value instead of minimising, so
that the value prunes from the start. A subset of devices spread over the pipeline, with the others relaxed to delays,
often refutes nearly as much as all of them, in a fraction of the time. Of a job shop intervals refute more than
literals.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from math import floor
from threading import Event
from typing import NamedTuple

from formulations.exact.exact_model import ExactModel
from formulations.jobs.jobs_of_problem import jobs_of
from formulations.variables.literal_count import literal_count
from formulations.variables.literals import TooLong
from formulations.variables.model_variables import MOST_LITERALS
from pipesched.problem.attainable_spans import Value, largest_denominator, least_above, most_below
from pipesched.problem.chains.microbatch_chains import is_job_shop
from pipesched.problem.problem import Problem
from pipesched.problem.rescale import finer
from pipesched.schedule.schedule import Schedule
from solver.backends.cp_sat import Parameters, solve_model
from solver.bounds.analytic.critical_paths import blocks_outlast_passes
from solver.limits import Limits
from solver.tuning import FEW_LITERALS, LEVELS, SHARE


class RefutedValue(NamedTuple):
    """No schedule is below `value` ticks, even if only these `devices` obey no-overlap and memory limits.

    The others run passes of one kind and stage in turn, and any others at once.
    """

    value: Value
    devices: Sequence[int]


def destructive_bounds(
    problem: Problem,
    limits: Limits,
    seconds: float,
    known: Callable[[], tuple[Value, Value]],
    stop: Event,
    every: bool = False,
) -> Iterator[RefutedValue | Schedule]:
    """Increasing bounds, and a schedule where all devices together turn out to have one.

    `known` gives what is proved by now and the value to stay below, in ticks; it ends when the two meet, when told to
    stop, or out of time. What is asked for last may be a fraction of a tick: then in as many times finer ticks, in
    which an order that takes no longer has whole times. `every` device is asked for at once where the exact model of
    all has proved much already, whatever its literals, and one value for as long as there is time.
    """
    parts = largest_denominator(problem)
    spent, started = 0.0, time.monotonic()
    whole = seconds if limits.deterministic is None else limits.deterministic
    intervals = is_job_shop(problem)
    groups = [[*range(problem.devices)]] if intervals or every else _groups(problem)
    # What is near the bound takes almost as long to refute as what is halfway up; of a job shop it takes a moment, and
    # what is halfway up is not refuted at all.
    share = 2 / LEVELS if intervals else 1 / 2
    literals = -1 if intervals else MOST_LITERALS
    proved: Value = 0
    found: Value | None = None

    def left() -> float:
        return whole - (time.monotonic() - started if limits.deterministic is None else spent)

    while groups and not stop.is_set():
        low, below = known()
        # The consumer may not have processed the latest results yet.
        low, below = max(low, proved), below if found is None else min(below, found)
        if left() <= 0 or low >= below:
            return
        value = _asked_for(low, below, share, parts)
        model = _model_at(problem, value, low, literals, groups[0])
        # Building the model takes time.
        if model is None or left() <= 0 or stop.is_set():
            return
        effort = left() if every else min(SHARE * whole, left())
        work = None if limits.deterministic is None else effort
        parameters = Parameters(effort, work, limits.seed, first_solution=True, clauses_only=not intervals)
        answer = solve_model(model.cp, parameters, stop)
        spent += answer.work
        if answer.infeasible:
            proved = least_above(value, parts)
            yield RefutedValue(proved, groups[0])
            share = min(1.0, 2 * share)
        elif answer.has_solution and len(groups) > 1:
            # It takes more devices to refute this.
            groups = groups[1:]
        elif answer.has_solution and len(groups[0]) == problem.devices:
            found = value
            schedule = model.decode(answer.value_of)
            assert schedule is not None, "the model keeps the memory at every start"
            yield schedule
        elif share <= 1 / LEVELS:
            return
        else:
            share = max(1 / LEVELS, share / 2)


def _asked_for(low: Value, below: Value, share: float, parts: int) -> Value:
    """A share of the way up from what is proved, in whole ticks; the last fraction where no whole tick is left."""
    value: Value = min(most_below(below, parts), floor(low) + int(share * (below - low)))
    return most_below(below, parts) if value < low else value


def _model_at(problem: Problem, value: Value, low: Value, literals: int, devices: Sequence[int]) -> ExactModel | None:
    """The schedules of at most this value, in ticks of which it is a whole number.

    None if there are too many, or if blocks are left out, so that nothing would be refuted.
    """
    fine = finer(problem, value.denominator)
    try:
        model = ExactModel(jobs_of(fine), value.numerator, low * value.denominator, literals, devices=devices)
    except TooLong:
        return None
    return model if model.bounds_everything else None


def _groups(problem: Problem) -> list[list[int]]:
    """Half of the devices, every other along the pipeline, or fewer if they have too many literals; then all of them.

    Only all of them where an overlapped block could be shorter than one of its passes.
    """
    placement, devices = problem.placement, problem.devices
    along = list(dict.fromkeys([*(placement.stage_device[stage] for stage in placement.chains[0]), *range(devices)]))
    steps = [step for step in (2, 4, 8, 16, 32) if step < 2 * devices] if blocks_outlast_passes(problem) else []

    def small(group: list[int]) -> bool:
        return literal_count(problem, group) <= FEW_LITERALS

    some = next((group for group in (sorted(along[::step]) for step in steps) if small(group)), None)
    every = sorted(along)
    return ([] if some is None or some == every else [some]) + ([every] if small(every) else [])
