"""Subsolver for list schedules by tuned priority rules; for very long problems a construction heuristic tunes them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from pipesched.deadline import Deadline, within
from pipesched.problem.problem import Problem
from solver.construction.lists.tables import covers
from solver.construction.tuned_lists import TunedLists, until
from solver.engine.kernels import LIST_KERNELS, Kernels
from solver.engine.search import Search
from solver.engine.slices import Work
from solver.parameters import tunable, tuned


@dataclass(frozen=True)
@tunable
class TunedListSchedules:
    """Change priority rules at random until `patience` runs per stage bring no gain; a fixed number if work is counted.

    Rules are tuned with split backwards, and with full backwards where those may be shorter, in turn. That number is
    `counted_runs`.
    """

    counted_runs: int = tuned(200, "runs, where work is counted", 1, 10_000)
    patience: int = tuned(200, "runs a stage without gain", 1, 10_000)
    name: str = "tuned list schedules"
    parallel: bool = True
    restarts: bool = False

    def serves(self, search: Search) -> bool:
        return search.chains is None and not search.very_long and covers(search.problem)

    def kernels(self, _: Search) -> Kernels:
        return LIST_KERNELS

    def work(self, search: Search) -> Work:
        searches = [TunedLists(search.problem, split, search.workers, search.limits.seed) for split in _splits(search)]
        patience, counted = self.patience * search.problem.placement.stages, search.clock.counts_work
        slice_ = yield
        for lists in searches:
            lists.descend(lambda: search.stop.is_set() or slice_.over())
            _offer(search, lists)
        while open_ := [one for one in searches if one.rules is not None and one.runs_without_gain < patience]:
            for number, lists in enumerate(open_):
                known = lists.rules
                seconds = slice_.left() / (len(open_) - number)

                def over(lists: TunedLists = lists) -> bool:
                    return search.done() or lists.runs_without_gain >= patience

                lists.vary(search.stop.is_set, self.counted_runs) if counted else lists.vary(until(seconds, over))
                if lists.rules is not known:
                    _offer(search, lists)
            if counted:
                return
            slice_ = yield


@dataclass(frozen=True)
@tunable
class RulesOfShorter:
    """Construction heuristic for very long problems: list schedules by rules tuned on fewer micro-batches.

    The shorter problem has a few micro-batches for each device, or more, up to `short_passes` passes. Tuning takes
    `share` of the time, and up to twice as much while its last third still brings gains. Where work is counted, it
    takes a fixed number of runs. That number is `counted_runs`. It has at least `microbatches_per_device` micro-batches
    a device; of the time, `runs_left` runs over all micro-batches must stay left.
    """

    counted_runs: int = tuned(200, "runs, where work is counted", 1, 10_000)
    share: float = tuned(0.2, "of the time limit; up to twice that while something better is found", 0, 0.5)
    short_passes: int = tuned(5_000, "passes of the shorter problem", 100, 50_000)
    microbatches_per_device: int = tuned(3, "of the shorter problem at least", 1, 20)
    runs_left: float = tuned(6.0, "runs over all micro-batches that must fit into the time left", 1, 100)
    name: str = "tuned list schedules"

    def applies(self, search: Search) -> bool:
        if search.done() or not (search.very_long and search.problem.view) or search.chains is not None:
            return False
        return covers(search.problem) and search.compiled(LIST_KERNELS)

    def run(self, search: Search) -> None:
        splits = list(_splits(search))
        for split in splits:
            self._tuned(search, split, 1 / len(splits))
        if search.done():
            search.end()

    def _tuned(self, search: Search, split: bool, part: float) -> None:
        """Tune rules on few micro-batches and offer their schedule of all of them after each change of the best rules.

        Each change is offered since rules that are better for few may be worse for many. `split` is the mode of the
        backwards, `part` the share of this heuristic's time.
        """
        clock = search.clock
        lists = TunedLists(self._shorter(search.problem), split, search.workers, search.limits.seed)
        begin, least = clock.seconds, part * clock.share(self.share)
        end = begin + part * clock.share(2 * self.share)

        def over() -> bool:
            late = clock.seconds >= end or clock.left() < self.runs_left * lists.seconds_a_pass * search.passes
            return search.stop.is_set() or (late and not clock.counts_work)

        lists.descend(over)
        self._offer(search, lists)
        if clock.counts_work and not search.done():
            lists.vary(search.stop.is_set, self.counted_runs)
            self._offer(search, lists)
        while not (clock.counts_work or search.done() or clock.seconds >= end):
            best, offered, so_far = lists.best, lists.rules, max(clock.seconds - begin, least / 3)
            lists.vary(until(min(so_far / 2, end - clock.seconds), search.done))
            if lists.rules is not offered:
                self._offer(search, lists)
            if clock.seconds > begin + least and lists.best == best:
                break

    def _shorter(self, problem: Problem) -> Problem:
        """Return the same problem with fewer micro-batches, on which rules are tuned; unchanged if it has few."""
        chains = len(problem.placement.chains)
        most = self.short_passes // (3 * problem.placement.stages)
        few = chains * max(self.microbatches_per_device * problem.devices, most)
        return replace(problem, microbatches=min(few, problem.microbatches), walks=replace(problem.walks, shares=()))

    def _offer(self, search: Search, lists: TunedLists) -> None:
        """Offer the schedule that the rules give for all micro-batches, if it is better than the incumbent."""

        def whole() -> None:
            schedule = lists.schedule(search.problem, search.incumbent.value)
            if schedule is not None:
                search.offer_order(schedule)

        within(Deadline.after(search.clock.allowed(), search.stop), whole)


def _splits(search: Search) -> Iterator[bool]:
    """Yield the backward modes to try: True for split (B and W) first, False for fused (BW).

    Fused is left out where splitting is possible and fusing saves no time.
    """
    view = search.problem.pipeline
    if view.splits:
        yield True
    if not view.splits or any(map(view.saved_by_fusing, view.stages)):
        yield False


def _offer(search: Search, lists: TunedLists) -> None:
    schedule = lists.schedule()
    if schedule is not None:
        search.start_from(schedule)
