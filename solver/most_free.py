"""One solve for the most free memory on every device: the amount, then the least time of schedules that leave it."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from pipesched.problem.free_memory import most_left, reserving
from pipesched.problem.problem import Problem
from pipesched.problem.quantities import MemorySteps
from pipesched.results.free_memory import MostFree
from pipesched.results.solution import Solution, Status
from solver.limits import Limits
from solver.parameters import tunable, tuned


@dataclass(frozen=True)
@tunable
class MostFreeScheduleParams:
    """Shares of time for searches that each try an amount of free memory of which no schedule is known."""

    share: float = tuned(0.5, "of the time left, for one amount", 0.1, 1)
    least_seconds: float = tuned(0.2, "s for one amount, even where the time is over", 0, 10)


_PARAMS = MostFreeScheduleParams()


def leaving_most(search: Callable[[Problem, Limits], Solution], problem: Problem, limits: Limits) -> Solution:
    """Return the schedule with the most free memory and, of those, the least time that `search` finds.

    `search(problem, limits)` gets the problem with an amount reserved on every device, for a part of the limits. The
    solution is of the problem with the amount of its schedule reserved: its bound holds for all schedules that leave as
    much. Its status is `OPTIMAL` only if its amount and its time are both proved; `free` is None without a schedule. An
    amount that no schedule exceeds is known beforehand, and tried first. There may be no schedule that leaves it only
    with activations that move or memory of running passes: then smaller amounts are tried by bisection. If none is
    found before the time is over, the last search reserves nothing, as for an infeasible problem. At least one device
    must have a limited memory.
    """
    most = most_left(problem)
    if most is None:
        return search(reserving(problem, 0), limits)
    amounts = _Amounts(search, problem, limits, most)
    amounts.ask(most)
    while amounts.low < amounts.tried - 1 and not amounts.over():
        amounts.ask((amounts.low + amounts.tried) // 2)
    if amounts.low < 0 < amounts.tried:
        # None was found in time. A bound holds for the answer, whatever it leaves, if it holds for all schedules.
        amounts.ask(0)
    return amounts.solution()


class _Amounts:
    """Bisection over the free memory on every device, in steps of memory.

    `low` is the largest amount asked for which a schedule was found, -1 until there is one; `tried` is the smallest for
    which none was found; no schedule leaves more than `bound`.
    """

    def __init__(
        self, search: Callable[[Problem, Limits], Solution], problem: Problem, limits: Limits, bound: MemorySteps
    ) -> None:
        self._search, self._problem, self._limits, self.bound = search, problem, limits, bound
        self.low, self.tried, self._units, self._begin = -1, bound + 1, 0.0, time.monotonic()
        self._best: Solution | None = None
        self._last: Solution | None = None
        network = problem.network
        moved = (network.reservoirs[to].room for changes in network.elsewhere.values() for to, _ in changes)
        self._exact = not network.has_pass_memory and all(room is None for room in moved)

    def over(self) -> bool:
        """True if the time is over, or the search was stopped."""
        stopped = self._last is not None and self._last.interrupted
        return stopped or self._left().seconds <= 0 or self._left().deterministic == 0

    def ask(self, amount: MemorySteps) -> None:
        """Search for a schedule that leaves `amount` free on every device, and narrow the bisection.

        If one is found, `low` is `amount`, even if the schedule leaves more; else `tried` is `amount`, and `bound` is
        less than it if there is proof that no schedule leaves it.
        """
        found = self._search(reserving(self._problem, amount), self._part())
        self._last = found
        if found.timeline is not None:
            self._best, self.low = found, amount
            return
        self.tried = amount
        if found.status is Status.INFEASIBLE:
            self.bound = min(self.bound, amount - 1)

    def solution(self) -> Solution:
        """Return the solution whose schedule leaves the most; without one, the answer of the last search.

        `free` is the amount left and the bound; the status is `OPTIMAL` only if this amount and the time are both
        proved.
        """
        if self._best is None or self._best.timeline is None:
            assert self._last is not None
            return self._last
        step = self._problem.resolution
        found = MostFree(self.low * step, self.bound * step)
        proved = found.proved or self._best.status is not Status.OPTIMAL
        return replace(self._best, free=found, status=self._best.status if proved else Status.FEASIBLE)

    def _left(self) -> Limits:
        limits = self._limits
        seconds = max(0.0, limits.seconds - (time.monotonic() - self._begin))
        units = limits.deterministic
        return replace(limits, seconds=seconds, deterministic=None if units is None else max(0.0, units - self._units))

    def _part(self) -> Limits:
        left, share = self._left(), 1 if self._exact else _PARAMS.share
        units = None if left.deterministic is None else share * left.deterministic
        self._units += units or 0
        return replace(left, seconds=max(_PARAMS.least_seconds, share * left.seconds), deterministic=units)
