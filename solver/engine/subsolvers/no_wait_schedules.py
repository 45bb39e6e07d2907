"""Subsolver: schedules in which each micro-batch passes all stages and returns without a wait."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from threading import Event

from pipesched.schedule.schedule import Schedule
from solver.construction.no_wait.block import Block, block_of, serves
from solver.construction.no_wait.search import best_starts, schedule_of
from solver.engine.kernels import NO_WAIT_KERNELS, Kernels
from solver.engine.search import Search
from solver.engine.slices import Work, in_slices
from solver.parameters import tunable, tuned


@dataclass(frozen=True)
@tunable
class NoWaitSchedules:
    """Beam searches of growing width over the starts of micro-batches, with split backwards and with fused ones.

    They end when a search kept all of its nodes. Where work is counted, each slice is one search.
    """

    width: int = tuned(10, "nodes of a layer at first", 1, 10_000)
    width_growth: int = tuned(3, "times as many nodes the next time", 2, 10)
    most_width: int = tuned(1_000, "nodes of a layer", 1, 100_000)
    name: str = "no-wait schedules"
    parallel: bool = False
    restarts: bool = False

    def serves(self, search: Search) -> bool:
        return search.chains is None and not search.very_long and serves(search.problem)

    def kernels(self, _: Search) -> Kernels:
        return NO_WAIT_KERNELS

    def work(self, search: Search) -> Work:
        found = list[Schedule]()

        def look_for(stop: Event) -> None:
            for schedules in self._searches(search, stop):
                found.extend(schedules)

        def take() -> None:
            while found:
                search.start_from(found.pop(0))

        if search.clock.counts_work:
            yield
            for schedules in self._searches(search, search.stop):
                found += schedules
                take()
                yield
        else:
            yield from in_slices(search.stop, look_for, take)

    def _searches(self, search: Search, stop: Event) -> Iterator[list[Schedule]]:
        """Yield the schedules of each width, until `stop` is set or no wider search would find others."""
        blocks, width = list(_blocks(search)), self.width
        while blocks and width <= self.most_width and not stop.is_set():
            found = [(block, best_starts(block, search.problem.microbatches, width, stop)) for block in blocks]
            yield [schedule_of(block, best.starts) for block, best in found if best is not None]
            blocks = [block for block, best in found if best is not None and not best.all_kept]
            width *= self.width_growth


def _blocks(search: Search) -> Iterator[Block]:
    """Yield the passes of a micro-batch with split backwards, and with fused ones where some of these are shorter."""
    view = search.problem.view
    assert view is not None
    if view.splits:
        yield block_of(view, True)
    if not view.splits or any(view.saved_by_fusing(s) for s in view.stages):
        yield block_of(view, False)
