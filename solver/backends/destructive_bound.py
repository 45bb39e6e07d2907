"""Destructive lower bounds: CP-SAT proves that no schedule of at most a given value exists, on some or all devices.

A destructive bound (Klein and Scholl, EJOR 112, 1999) tests feasibility at a given value instead of minimising, so that
the value prunes from the start. A subset of devices spread over the pipeline, with the others relaxed to delays, often
refutes nearly as much as all of them, in a fraction of the time. For a job shop, intervals refute more than literals.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
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
from pipesched.problem.quantities import DeviceId
from pipesched.problem.rescale import finer
from pipesched.schedule.schedule import Schedule
from solver.backends.cp_sat import Answer, Parameters, solve_model
from solver.bounds.analytic.critical_paths import blocks_outlast_passes
from solver.limits import Limits
from solver.parameters import tunable, tuned


@dataclass(frozen=True)
@tunable
class DestructiveParams:
    """Thresholds that CP-SAT is asked to refute; steps are shares of the gap."""

    first_step: float = tuned(
        1 / 2, "of the gap", 0.01, 1, "a value near the bound takes almost as long to refute as one halfway up"
    )
    job_shop_step: float = tuned(1 / 32, "of the gap, without order literals: halfway up nothing is refuted", 0.001, 1)
    least_step: float = tuned(1 / 64, "of the gap, below which no smaller step is tried", 0.001, 1)
    share_of_call: float = tuned(0.2, "of the time or counted work, for one call on some devices", 0.01, 1)
    most_literals: int = tuned(12_000, "order literals, beyond which nothing is refuted in a minute", 100, 10**6)


_PARAMS = DestructiveParams()


class RefutedValue(NamedTuple):
    """A bound proved: no schedule is below `value` ticks, even if only `devices` obey no-overlap and memory limits.

    Other devices run the passes of one kind and stage one at a time, and any others at once.
    """

    value: Value
    devices: Sequence[DeviceId]


def destructive_bounds(
    problem: Problem,
    limits: Limits,
    seconds: float,
    known: Callable[[], tuple[Value, Value]],
    stop: Event,
    every: bool = False,
) -> Iterator[RefutedValue | Schedule]:
    """Yield increasing bounds, and a schedule where the model of all devices turns out to have a better one.

    `known()` returns the proved bound and the value of the best schedule, both in ticks; the search ends when they
    meet, at `stop`, or after `seconds`, in place of which the counted work of `limits` ends it if given. A schedule has
    no times yet; with the best ones its value is less than that of `known`. The last threshold may be a fraction of a
    tick: times are then in finer ticks, in which every order of that value has whole times. With `every` the model
    always has all devices, whatever the number of literals, and one threshold is tried for all the time left: for use
    after the exact model has proved much already.
    """
    yield from _Refuting(problem, limits, seconds, known, stop, every).found()


class _Refuting:
    """State of the search.

    `known()` returns the proved bound and the best schedule's value in ticks; with `every` all devices are in the
    model. It has the groups of devices still to try, the step as a share of the gap, and the seconds or counted work
    left.
    """

    def __init__(
        self,
        problem: Problem,
        limits: Limits,
        seconds: float,
        known: Callable[[], tuple[Value, Value]],
        stop: Event,
        every: bool,
    ) -> None:
        self._problem, self._limits, self._known, self._stop, self._every = problem, limits, known, stop, every
        self._parts = largest_denominator(problem)
        self._started, self._spent = time.monotonic(), 0.0
        self._whole = seconds if limits.deterministic is None else limits.deterministic
        self._intervals = is_job_shop(problem)
        self._groups = [[*range(problem.devices)]] if self._intervals or every else _groups(problem)
        # A threshold near the bound takes almost as long to refute as one halfway up. Not so for a job shop: there it
        # takes a moment, and one halfway up is not refuted at all.
        self._share = _PARAMS.job_shop_step if self._intervals else _PARAMS.first_step
        self._proved: Value = 0
        self._found: Value | None = None

    def found(self) -> Iterator[RefutedValue | Schedule]:
        while self._groups and not self._stop.is_set():
            low, upper = self._open()
            if self._left() <= 0 or low >= upper:
                return
            value = _asked_for(low, upper, self._share, self._parts)
            literals = -1 if self._intervals else MOST_LITERALS
            model = _model_at(self._problem, value, low, literals, self._groups[0])
            # Building the model takes time.
            if model is None or self._left() <= 0 or self._stop.is_set():
                return
            answer = self._answer(model)
            if answer.infeasible:
                self._proved, self._share = least_above(value, self._parts), min(1.0, 2 * self._share)
                yield RefutedValue(self._proved, self._groups[0])
            elif answer.has_solution and len(self._groups) > 1:
                # More devices are needed to refute this threshold.
                self._groups = self._groups[1:]
            elif answer.has_solution and len(self._groups[0]) == self._problem.devices:
                self._found = value
                schedule = model.decode(answer.value_of)
                assert schedule is not None, "the model keeps the memory at every start"
                yield schedule
            elif self._share <= _PARAMS.least_step:
                return
            else:
                self._share = max(_PARAMS.least_step, self._share / 2)

    def _open(self) -> tuple[Value, Value]:
        """Return the proved bound and the value to stay below, in ticks.

        Both include own results that `known` does not have yet.
        """
        low, upper = self._known()
        return max(low, self._proved), upper if self._found is None else min(upper, self._found)

    def _left(self) -> float:
        """Return the seconds or the counted work left."""
        counted = self._limits.deterministic is not None
        return self._whole - (self._spent if counted else time.monotonic() - self._started)

    def _answer(self, model: ExactModel) -> Answer:
        effort = self._left() if self._every else min(_PARAMS.share_of_call * self._whole, self._left())
        work = None if self._limits.deterministic is None else effort
        parameters = Parameters(
            effort, work, self._limits.seed, workers=1, first_solution=True, clauses_only=not self._intervals
        )
        answer = solve_model(model.cp, parameters, self._stop)
        self._spent += answer.work
        return answer


def _asked_for(low: Value, upper: Value, share: float, parts: int) -> Value:
    """Return the threshold at `share` of the gap between the bound `low` and the value `upper`, in whole ticks.

    If no whole tick is left, it is the last attainable fraction below `upper`; `parts` is the largest denominator of an
    attainable value.
    """
    value: Value = min(most_below(upper, parts), floor(low) + int(share * (upper - low)))
    return most_below(upper, parts) if value < low else value


def _model_at(
    problem: Problem, value: Value, low: Value, literals: int, devices: Sequence[DeviceId]
) -> ExactModel | None:
    """Return the model of the schedules of at most `value` ticks, in finer ticks of which that is a whole number.

    `low` is a proved bound in ticks, `literals` the most order literals (-1: none, the model has intervals). None if
    the model is too large, or if blocks are left out, so that nothing would be refuted.
    """
    fine = finer(problem, value.denominator)
    try:
        model = ExactModel(jobs_of(fine), value.numerator, low * value.denominator, literals, devices=devices)
    except TooLong:
        return None
    return model if model.bounds_everything else None


def _groups(problem: Problem) -> list[list[DeviceId]]:
    """Return groups of devices to try one after the other: every other device along the pipeline, or fewer; then all.

    A group has fewer devices if half of them has too many literals; groups that are still too large are left out, so
    the list may be empty. Only the group of all devices is tried if an overlapped block could be shorter than one of
    its passes.
    """
    placement, devices = problem.placement, problem.devices
    along = list(dict.fromkeys([*(placement.stage_device[stage] for stage in placement.chains[0]), *range(devices)]))
    steps = [step for step in (2, 4, 8, 16, 32) if step < 2 * devices] if blocks_outlast_passes(problem) else []

    def small(group: list[DeviceId]) -> bool:
        return literal_count(problem, group) <= _PARAMS.most_literals

    some = next((group for group in (sorted(along[::step]) for step in steps) if small(group)), None)
    every = sorted(along)
    return ([] if some is None or some == every else [some]) + ([every] if small(every) else [])
