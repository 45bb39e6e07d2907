"""Phase: list schedules by rules that are searched for; of a very long problem, by rules of a shorter one."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from functools import partial

from pipesched.problem.mode_gains import saved_by_fusing
from pipesched.problem.problem import Problem
from solver.backends.interruptible import run_within
from solver.construction.list_tables import covers
from solver.construction.tuned_lists import TunedLists, until
from solver.engine.search import Search


@dataclass(frozen=True)
class TunedListSchedules:
    """For a share of the time, and up to `most_share` while what was found in the last third of it is better; until
    `patience` runs a stage one after the other bring no gain.

    Rules do not depend on the number of micro-batches, so that those of a very long problem are found on one of
    `microbatches_a_device`, or of as many more as `short_passes` allow. It is that kind of problem, or any other of
    `least_passes`, that the phase is for. Where work is counted, so many runs are made.
    """

    very_long: bool = False
    least_passes: int = 0
    share: float = 0.06
    most_share: float = 0.2
    microbatches_a_device: int = 3
    short_passes: int = 5_000
    counted_runs: int = 200
    patience: int = 300
    runs_to_offer: float = 8.0  # that take as long as a run with its exact times and judgement, amply
    name: str = "tuned list schedules"

    def applies(self, search: Search) -> bool:
        of_kind = search.very_long is self.very_long and search.passes >= self.least_passes
        if search.done() or not of_kind or self.name in search.entered:
            return False
        return search.chains is None and covers(search.problem) and search.kernels_ready(0.0)

    def run(self, search: Search) -> None:
        """With the backwards split, and fused where that may be shorter, one after the other."""
        problem = search.problem
        ways = [True] if problem.splittable else [False]
        if problem.splittable and any(saved_by_fusing(problem, s) > 0 for s in range(problem.placement.stages)):
            ways.append(False)
        for split in ways:
            self._tuned(search, split, 1 / len(ways))
        if self.very_long and search.done():
            search.end()

    def _tuned(self, search: Search, split: bool, part: float) -> None:
        """Offers after the first rules and, where they changed, after the last; of a very long problem each time."""
        clock, workers = search.clock, search.limits.workers or os.cpu_count() or 1
        patience = self.patience * search.problem.placement.stages
        lists = TunedLists(self._tried(search.problem), split, workers, search.limits.seed)
        counted = clock.counts_work
        begin, least = clock.seconds, part * clock.share(self.share)
        end = begin + part * clock.share(self.most_share)

        def over() -> bool:
            late = clock.seconds >= end or clock.left() < self.runs_to_offer * lists.seconds_a_pass * search.passes
            return search.stop.is_set() or (late and not counted)

        lists.descend(over)
        offered = lists.rules
        self._offer(search, lists)
        if counted and not search.done():
            lists.vary(search.stop.is_set, self.counted_runs)

        def settled() -> bool:
            return search.done() or lists.runs_without_gain >= patience

        while not (counted or settled() or clock.seconds >= end):
            best, so_far = lists.best, max(clock.seconds - begin, least / 3)
            lists.vary(until(min(so_far / 2, end - clock.seconds), settled))
            if self.very_long and lists.rules is not offered:
                # What is as good for few micro-batches may be worse for many.
                offered = lists.rules
                self._offer(search, lists)
            if clock.seconds > begin + least and lists.best == best:
                break
        if lists.rules is not offered:
            self._offer(search, lists)

    def _tried(self, problem: Problem) -> Problem:
        """The problem whose schedules are tried."""
        if not self.very_long:
            return problem
        chains = len(problem.placement.chains)
        most = self.short_passes // (3 * problem.placement.stages)
        few = chains * max(self.microbatches_a_device * problem.devices, most)
        return replace(problem, microbatches=min(few, problem.microbatches), chain_shares=())

    def _offer(self, search: Search, lists: TunedLists) -> None:
        if self.very_long:
            run_within(search.clock.allowed(), search.stop, partial(_offer_whole, search, lists))
        elif (schedule := lists.schedule()) is not None:
            search.start_from(schedule)


def _offer_whole(search: Search, lists: TunedLists) -> None:
    """What the rules give for all micro-batches, if it is better."""
    schedule = lists.schedule(search.problem, search.incumbent.value)
    if schedule is not None:
        search.offer_order(schedule)
