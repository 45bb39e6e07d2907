"""Budget of a plan search: wall-clock seconds, or CP-SAT's deterministic work units for reproducible results."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import count, repeat
from math import inf
from threading import Event
from typing import TypeAlias, TypeVar

from pipesched.deadline import Deadline, within
from solver.backends.cp_sat import Parameters
from solver.limits import Limits
from solver.parameters import tunable, tuned


@dataclass(frozen=True)
@tunable
class BudgetParams:
    """Sizes of the shares into which a plan search divides its time limit, in seconds or deterministic work."""

    least_step: float = tuned(0.2, "s or units, and of shorter limits this share of the whole", 0.01, 1)
    reason_seconds: float = tuned(1.0, "s or units at least, for the reason why there is no plan", 0.1, 100)
    reason_share: float = tuned(0.2, "of the whole, for the same", 0, 1)
    counted_tries: int = tuned(200, "quick tries, where work is counted", 1, 10**5)
    steps_per_work: int = tuned(200, "steps of annealing in a unit of counted work", 1, 10**6)
    solve_uses: float = tuned(0.9, "of its counted work, that a solve does not use: given back", 0, 1)


_PARAMS = BudgetParams()
Result = TypeVar("Result")
# An amount of a budget: seconds, or units of work where work is counted (`Limits.deterministic`).
SecondsOrWork: TypeAlias = float


class Budget:
    """The time limit, or the deterministic work, of a plan search, from which its steps take their shares.

    `slowest_plan` is the longest time in seconds in which a plan was validated. Work units are subtracted when they are
    handed out; `give_back` and `solved` return those that were not used. Once the event `stop` is set the budget counts
    as spent.
    """

    def __init__(self, limits: Limits, stop: Event) -> None:
        self.limits, self.stop = limits, stop
        self._begin = time.monotonic()
        self._units = limits.deterministic
        self.slowest_plan = 0.0  # s, the longest that one took so far to be validated

    @property
    def seconds(self) -> float:
        """Wall-clock seconds since the search began."""
        return time.monotonic() - self._begin

    @property
    def left(self) -> SecondsOrWork:
        """Budget that is left, in seconds, or in work units where work is counted; never negative."""
        return max(0.0, self.limits.seconds - self.seconds) if self._units is None else self._units

    @property
    def whole(self) -> SecondsOrWork:
        """The whole budget given at the beginning, in seconds, or in work units where work is counted."""
        return self.limits.seconds if self.limits.deterministic is None else self.limits.deterministic

    @property
    def least_step(self) -> SecondsOrWork:
        """Smallest share given to one step, in seconds or work units.

        Scaled down for budgets under 1, so that several fit.
        """
        return _PARAMS.least_step * min(1.0, self.whole)

    @property
    def workers(self) -> int:
        """Number of searches that may run at the same time: 1 where work is counted, for reproducible results."""
        return 1 if self._units is not None else self.limits.workers or os.cpu_count() or 1

    def within(self, work: Callable[[], Result], least: float) -> Result | None:
        """Run `work` and return its result, or None if the time limit or the user's stop interrupted it.

        `work` calls `over` between its steps, and may also be interrupted within a step. It is allowed at least `least`
        seconds. With a time limit of 0 only the user's stop interrupts it; where work is counted nothing does.
        """
        if self._units is not None:
            return work()
        return within(Deadline.after(max(self.left, least) if self.whole > 0 else inf, self.stop), work)

    def took(self, seconds: float) -> None:
        """Record that validating one plan took `seconds`; `slowest_plan` keeps the maximum."""
        self.slowest_plan = max(self.slowest_plan, seconds)

    def over(self) -> bool:
        """True if the budget is spent or the user has stopped the search."""
        return self.stop.is_set() or self.left <= 0

    def parameters(self, most: SecondsOrWork) -> Parameters:
        """Take at most `most` seconds or work units from the budget; return the parameters of one CP-SAT call.

        The call has all workers of the limits, or one where work is counted.
        """
        given = self._take(most)
        deterministic = None if self._units is None else given
        workers = self.limits.workers if self._units is None else 1
        return Parameters(given, deterministic, self.limits.seed, workers)

    def for_reason(self) -> Parameters:
        """Return the parameters of the CP-SAT call that explains, after the search, why no plan exists.

        May exceed the budget.
        """
        most = max(_PARAMS.reason_seconds, min(_PARAMS.reason_share * self.whole, self.left))
        return Parameters(most, None if self._units is None else most, self.limits.seed, 1)

    def give_back(self, parameters: Parameters, used: float) -> None:
        """Return to the budget the work units that a CP-SAT call with `parameters` did not use.

        `used` is its actual work.
        """
        if self._units is not None and parameters.deterministic is not None:
            self._units += max(0.0, parameters.deterministic - used)

    def tries(self, most: SecondsOrWork) -> Iterator[bool]:
        """Yield True once for each try of a heuristic that the budget allows within `most` seconds.

        Where work is counted, the number of tries is fixed; it is 0 if `most` is 0.
        """
        until = self.left - most
        for _ in repeat(True) if self._units is None else repeat(True, _PARAMS.counted_tries if most > 0 else 0):
            if self.over() or (self._units is None and self.left <= until):
                return
            yield True

    def late(self, most: SecondsOrWork) -> Callable[[], bool]:
        """Return a predicate that is True once `most` seconds have passed, the budget is spent or the user has stopped.

        Where work is counted only the user's stop counts.
        """
        until = time.monotonic() + min(most, self.left)
        return self.stop.is_set if self._units is not None else lambda: self.over() or time.monotonic() >= until

    def progress(self, most: SecondsOrWork) -> Callable[[], float]:
        """Take at most `most` seconds or work units; return a function that gives the share of them that is spent.

        It is to be called once in each iteration of a step's loop, which ends at 1 or more. Where work is counted, the
        share is that of the number of iterations that the units stand for. It is 1 if the user has stopped.
        """
        given, begin, steps = self._take(most), time.monotonic(), count()
        if self._units is None:
            return lambda: 1.0 if self.stop.is_set() else (time.monotonic() - begin) / max(given, 1e-9)
        most_steps = max(1, int(given * _PARAMS.steps_per_work))
        return lambda: 1.0 if self.stop.is_set() else next(steps) / most_steps

    def of_solve(self, most: SecondsOrWork) -> Limits:
        """Take at most `most` seconds or work units from the budget; return the limits of one schedule search.

        With counted work the search has one worker.
        """
        given = self._take(most)
        if self._units is None:
            return replace(self.limits, seconds=given)
        return replace(self.limits, deterministic=given, workers=1)

    def solved(self, limits: Limits, optimal: bool) -> None:
        """Give most work units of a schedule search back to the budget if it proved its optimum early (`optimal`)."""
        if self._units is not None and limits.deterministic is not None and optimal:
            self._units += _PARAMS.solve_uses * limits.deterministic

    def _take(self, most: SecondsOrWork) -> SecondsOrWork:
        given = max(0.0, min(most, self.left))
        if self._units is not None:
            self._units -= given
        return given
