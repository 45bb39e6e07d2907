"""Subsolver: schedules in which each micro-batch passes all stages and returns without a wait."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil
from threading import Event
from typing import NamedTuple

from pipesched.schedule.rescale import value_of
from pipesched.schedule.timeline import Timeline
from solver.construction.no_wait.block import Block, block_of, serves, simplified
from solver.construction.no_wait.search import best_starts, schedule_of
from solver.construction.timing import best_times
from solver.engine.kernels import NO_WAIT_KERNELS, Kernels
from solver.engine.search import Search
from solver.engine.slices import Work, in_slices
from solver.parameters import tunable, tuned


class _Width(NamedTuple):
    """The schedules of the searches of one width with their best times, best first, and the nodes of these searches.

    `nodes` is their number in all.
    """

    timelines: list[Timeline]
    nodes: int


@dataclass(frozen=True)
@tunable
class NoWaitSchedules:
    """Beam searches of growing width over the starts of micro-batches, for schedules without waits.

    Searches differ in whether backwards are split or fused. Since hardly any start fits with the real times, each
    search also runs with equal times, without transfers, and with both changes; the orders found then run with the real
    times, and with waits. The next width continues the better half of the searches, and none that kept all of its
    nodes. Where work is counted, a slice has as many widths as its work allows, at least one. A layer has `width` nodes
    at first, then `width_growth` times as many each time, up to `most_width`; `nodes_per_unit` nodes are a unit of
    counted work.
    """

    width: int = tuned(10, "nodes of a layer at first", 1, 10_000)
    width_growth: int = tuned(3, "times as many nodes the next time", 2, 10)
    most_width: int = tuned(1_000, "nodes of a layer", 1, 100_000)
    nodes_per_unit: int = tuned(5_000, "nodes for a unit of counted work", 1, 10**6)
    name: str = "no-wait schedules"
    parallel: bool = False
    restarts: bool = False

    def serves(self, search: Search) -> bool:
        return search.chains is None and not search.very_long and serves(search.problem)

    def kernels(self, _: Search) -> Kernels:
        return NO_WAIT_KERNELS

    def work(self, search: Search) -> Work:
        found = list[Timeline]()

        def look_for(stop: Event) -> None:
            for width in self._widths(search, stop):
                found.extend(width.timelines)

        def take() -> None:
            while found:
                search.start_from_timeline(found.pop(0))

        if search.clock.counts_work:
            most, nodes = (yield).counted(self.nodes_per_unit) or 0, 0
            for width in self._widths(search, search.stop):
                nodes, found = nodes + width.nodes, width.timelines
                take()
                if nodes >= most:
                    most, nodes = (yield).counted(self.nodes_per_unit) or 0, 0
        else:
            yield from in_slices(search.stop, look_for, take)

    def _widths(self, search: Search, stop: Event) -> Iterator[_Width]:
        """Yield what each width finds, until `stop` is set or a wider search is no use.

        After each width only the better half of the blocks is kept, of those for which some node was dropped.
        """
        problem, blocks, width = search.problem, list(_blocks(search)), self.width
        while blocks and width <= self.most_width and not stop.is_set():
            found, nodes = list[tuple[Timeline, Block, bool]](), 0
            for block in blocks:
                best = best_starts(block, problem.microbatches, width, stop)
                if best is not None:
                    found.append((best_times(problem, schedule_of(block, best.starts)), block, best.all_kept))
                    nodes += best.nodes
            found.sort(key=lambda one: value_of(problem, one[0]))
            yield _Width([timeline for timeline, *_ in found], nodes)
            blocks = [block for _, block, all_kept in found[: ceil(len(blocks) / 2)] if not all_kept]
            width *= self.width_growth


def _blocks(search: Search) -> Iterator[Block]:
    """Yield the passes of a micro-batch, with its real times and simplified ones.

    Backwards are split where the problem splits them; then fused, if it does not or if some fused ones are shorter.
    """
    view = search.problem.view
    assert view is not None
    fused = not view.splits or any(view.saved_by_fusing(s) for s in view.stages)
    for split in (True,) * view.splits + (False,) * fused:
        for one in simplified(view, split):
            yield block_of(one, split, search.problem.objective.by_device)
