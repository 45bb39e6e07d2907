"""Budget of a plan search: seconds, or CP-SAT's own units, which repeat on every run."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import count, repeat
from math import inf
from threading import Event
from typing import TypeVar

from pipesched.deadline import Deadline, within
from solver.backends.cp_sat import Parameters
from solver.limits import Limits
from solver.parameters import tunable, tuned


@dataclass(frozen=True)
@tunable
class BudgetParams:
    """Steps in which the time of a plan search is given out; `deterministic` work is in CP-SAT's units."""

    least_step: float = tuned(0.2, "s or units, and of shorter limits this share of the whole", 0.01, 1)
    reason_seconds: float = tuned(1.0, "s or units at least, for the reason why there is no plan", 0.1, 100)
    reason_share: float = tuned(0.2, "of the whole, for the same", 0, 1)
    counted_tries: int = tuned(200, "quick tries, where work is counted", 1, 10**5)
    steps_per_work: int = tuned(200, "steps of annealing in a unit of counted work", 1, 10**6)
    solve_uses: float = tuned(0.9, "of its counted work, that a solve does not use: given back", 0, 1)


_PARAMS = BudgetParams()
Result = TypeVar("Result")


class Budget:
    """Hands out parts of the time limit. Units are counted as spent when they are handed out, used or not."""

    def __init__(self, limits: Limits, stop: Event) -> None:
        self.limits, self.stop = limits, stop
        self._begin = time.monotonic()
        self._units = limits.deterministic
        self.slowest_plan = 0.0  # s, the longest that one took so far to be validated

    @property
    def seconds(self) -> float:
        """Since the search began."""
        return time.monotonic() - self._begin

    @property
    def left(self) -> float:
        """Seconds, or units."""
        return max(0.0, self.limits.seconds - self.seconds) if self._units is None else self._units

    @property
    def whole(self) -> float:
        """Of all that there was, in seconds or units."""
        return self.limits.seconds if self.limits.deterministic is None else self.limits.deterministic

    @property
    def least_step(self) -> float:
        """The least that is given to a search at once: of a short limit so little that several have a turn."""
        return _PARAMS.least_step * min(1.0, self.whole)

    @property
    def workers(self) -> int:
        """The number of searches that may run at once; counted work is done by one."""
        return 1 if self._units is not None else self.limits.workers or os.cpu_count() or 1

    def within(self, work: Callable[[], Result], least: float) -> Result | None:
        """Work that asks `over` between its steps, and is ended in the middle of one where the time is over: then None.

        It has no less than so many seconds. A limit of none is that of a plan found at once, which only a stop ends;
        counted work is ended by nothing.
        """
        if self._units is not None:
            return work()
        return within(Deadline.after(max(self.left, least) if self.whole > 0 else inf, self.stop), work)

    def took(self, seconds: float) -> None:
        """A plan took so long to be validated."""
        self.slowest_plan = max(self.slowest_plan, seconds)

    def over(self) -> bool:
        """True if nothing is left, or the user has stopped the search."""
        return self.stop.is_set() or self.left <= 0

    def parameters(self, most: float) -> Parameters:
        """For one call of CP-SAT that takes so much at most."""
        given = self._take(most)
        deterministic = None if self._units is None else given
        workers = self.limits.workers if self._units is None else 1
        return Parameters(given, deterministic, self.limits.seed, workers)

    def for_reason(self) -> Parameters:
        """For one call of CP-SAT that says why there is no plan, after the search: beyond the limit by little."""
        most = max(_PARAMS.reason_seconds, min(_PARAMS.reason_share * self.whole, self.left))
        return Parameters(most, None if self._units is None else most, self.limits.seed, 1)

    def give_back(self, parameters: Parameters, used: float) -> None:
        """Units that a call of CP-SAT did not use."""
        if self._units is not None and parameters.deterministic is not None:
            self._units += max(0.0, parameters.deterministic - used)

    def tries(self, most: float) -> Iterator[bool]:
        """True as often as there is time for a try of something quick: so many seconds, or a set number of times."""
        until = self.left - most
        for _ in repeat(True) if self._units is None else repeat(True, _PARAMS.counted_tries if most > 0 else 0):
            if self.over() or (self._units is None and self.left <= until):
                return
            yield True

    def late(self, most: float) -> Callable[[], bool]:
        """True once so many seconds are over, or the user has stopped; where units are counted, only the latter."""
        until = time.monotonic() + min(most, self.left)
        return self.stop.is_set if self._units is not None else lambda: self.over() or time.monotonic() >= until

    def progress(self, most: float) -> Callable[[], float]:
        """Called before each step of a search: the share that is over of so many seconds, or of a number of steps."""
        given, begin, steps = self._take(most), time.monotonic(), count()
        if self._units is None:
            return lambda: 1.0 if self.stop.is_set() else (time.monotonic() - begin) / max(given, 1e-9)
        most_steps = max(1, int(given * _PARAMS.steps_per_work))
        return lambda: 1.0 if self.stop.is_set() else next(steps) / most_steps

    def of_solve(self, most: float) -> Limits:
        """For one solve that takes so much at most."""
        given = self._take(most)
        if self._units is None:
            return replace(self.limits, seconds=given)
        return replace(self.limits, deterministic=given, workers=1)

    def solved(self, limits: Limits, optimal: bool) -> None:
        """Most of the units of a solve that came to its end."""
        if self._units is not None and limits.deterministic is not None and optimal:
            self._units += _PARAMS.solve_uses * limits.deterministic

    def _take(self, most: float) -> float:
        given = max(0.0, min(most, self.left))
        if self._units is not None:
            self._units -= given
        return given
