"""List schedules by rules that are searched for, on parallel threads: thousands of compiled runs a second."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor, wait
from threading import Lock

import numpy as np

from pipesched.problem.attainable_spans import Value
from pipesched.problem.problem import Problem
from pipesched.problem.quantities import Ticks
from pipesched.schedule.schedule import Schedule
from solver.construction.list_scheduling import block_policies, fixes_warm_up
from solver.construction.lists.layout import Rules
from solver.construction.lists.tables import list_run, rules_of, schedule_of_run, shop_of
from solver.construction.policy import LISTS, Policy
from solver.construction.rule_search import FIRST_RULES, RuleMaker, Simple


class TunedLists:
    """Search for the best rules of the list scheduler for a problem, on `workers` threads, at random from `seed`.

    `best` are the value and the sum over devices of the best `rules` so far, in ticks; both are None before a run is
    complete. With `split` backwards are B and W. Setting `halt[0]` to 1 ends the runs under way. `runs_without_gain`
    counts runs since the last better one, `seconds_a_pass` is the seconds that the last run took for each of its
    passes, 0 before any.
    """

    def __init__(self, problem: Problem, split: bool, workers: int, seed: int) -> None:
        self.problem, self.split, self.workers = problem, split, workers
        self._shop = shop_of(problem, split)
        self._maker = RuleMaker(problem, self._shop, split)
        self._randoms = [np.random.default_rng((seed, number)) for number in range(workers)]
        self._changing = Lock()
        self.halt = np.zeros(1, np.int64)
        self.best: tuple[int, int] | None = None  # the value, and what all devices take together
        self.seconds_a_pass = 0.0  # of the last run, as busy as the machine is
        self.rules: Rules | None = None
        self.runs_without_gain = 0

    @property
    def value(self) -> Ticks | None:
        """Value in ticks of the best rules; None if no run has been completed."""
        return None if self.best is None else self.best[0]

    def descend(self, over: Callable[[], bool]) -> None:
        """Search rules equal on all stages by coordinate descent, then rules by ranks, until `over()`.

        A few policies of the list scheduler are evaluated first, including those that form blocks; these are not
        changed here.
        """
        warming = [Policy(self.split, patience, True, False, warm_up=True) for patience in LISTS.waits]
        plain = [
            Policy(self.split, patience, True, False, shares=shares)
            for patience in LISTS.waits
            for shares in (True, False)
        ]
        blocks = [policy._replace(split=self.split) for policy in block_policies(self.problem)]
        for policy in (*(warming if fixes_warm_up(self.problem) else ()), *plain, *blocks):
            self._try(rules_of(self.problem, policy, self._shop))
            if over():
                return
        tried = [(value, one) for one, value in self._side_by_side(FIRST_RULES) if value is not None]
        value, best = min(tried, key=lambda one: one[0], default=(None, FIRST_RULES[0]))
        while not over():
            before = value
            for numbers in best.each_number():
                for one, found in self._side_by_side(numbers):
                    if found is not None and (value is None or found < value):
                        best, value = one, found
            if value == before:
                break
        self._by_rank(over)

    def _by_rank(self, over: Callable[[], bool]) -> None:
        """Try random rules that choose by ranks until `over()`, if a device has several stages to choose from."""
        if all(len(stages) < 2 for stages in self.problem.placement.stages_of):
            return
        random = self._randoms[0]
        with ThreadPoolExecutor(self.workers) as pool:
            for _ in range(LISTS.ranked_runs // self.workers):
                deque(pool.map(self._try, [self._maker.ranked(random) for _ in range(self.workers)]), 0)
                if over():
                    return

    def vary(self, over: Callable[[], bool], runs: int | None = None) -> None:
        """Improve the best rules by random changes with all workers until `over()`; without rules do nothing.

        With `runs`, one worker makes exactly that many runs whatever `over()` says, which is reproducible.
        """
        with ThreadPoolExecutor(self.workers) as pool:
            workers = range(1 if runs is not None else self.workers)
            futures = [pool.submit(self._vary, worker, over, runs) for worker in workers]
            try:
                while wait(futures, timeout=0.1).not_done:
                    # Ctrl-C interrupts this loop.
                    self.halt[0] = runs is None and over()
            except BaseException:
                self.halt[0] = 1
                raise
            for future in futures:
                future.result()
        self.halt[0] = 0

    def schedule(self, problem: Problem | None = None, threshold: Value | None = None) -> Schedule | None:
        """Return the schedule of the best rules, for their problem or for `problem`.

        `problem` is the same with more or fewer micro-batches. None if there are no rules, memory deadlocks, or the
        value of the run, of starting as soon as possible, is not less than `threshold` ticks of `problem`.
        """
        if self.rules is None:
            return None
        problem = problem or self.problem
        found = list_run(shop_of(problem, self.split), self.rules)
        if found is None or (threshold is not None and found.value(problem.objective) >= threshold):
            return None
        return schedule_of_run(problem, found, self.split)

    def _vary(self, worker: int, over: Callable[[], bool], runs: int | None) -> None:
        done = 0
        while self.rules is not None and not self.halt[0] and (not over() if runs is None else done < runs):
            self._try(self._maker.changed(self.rules, self._randoms[worker]))
            done += 1

    def _side_by_side(self, several: Iterable[Simple]) -> list[tuple[Simple, Ticks | None]]:
        """Return several rules with their values in ticks (None: deadlock), evaluated in parallel, in their order."""
        given = list(several)
        with ThreadPoolExecutor(self.workers) as pool:
            return list(zip(given, pool.map(lambda one: self._try(self._maker.simple(one)), given), strict=True))

    def _try(self, rules: Rules) -> Ticks | None:
        """Evaluate rules by a run and keep them if they are no worse than the best; return their value in ticks.

        None if memory deadlocks or the run was ended. Of equal values the one with the smaller sum over devices is
        better: mostly some devices alone decide the value, and no single change makes all of them shorter.
        """
        begin = time.monotonic()
        found = list_run(self._shop, rules, self.halt)
        if found is None:
            return None
        self.seconds_a_pass = (time.monotonic() - begin) / len(found.put)
        objective = self.problem.objective
        value, in_all = found.value(objective), found.sum_over_devices(objective)
        with self._changing:
            better = self.best is None or (value, in_all) < self.best
            self.runs_without_gain = 0 if better else self.runs_without_gain + 1
            if better or (value, in_all) == self.best:
                self.best, self.rules = (value, in_all), rules
        return value


def until(seconds: float, done: Callable[[], bool]) -> Callable[[], bool]:
    """Return a condition that is true once `seconds` have passed since this call, or `done()` is true."""
    end = time.monotonic() + seconds
    return lambda: time.monotonic() >= end or done()
