"""Beam search over the starts of micro-batches that pass all stages and return without a wait."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from heapq import nsmallest
from operator import itemgetter
from threading import Event
from typing import Any, NamedTuple

import numpy as np

from pipesched.int64_arrays import int64_array
from pipesched.problem.passes import B, Pass, W
from pipesched.problem.quantities import Ticks
from pipesched.schedule.schedule import Schedule
from solver.construction.no_wait.block import OFFSET, TICKS, WEIGHT, Block
from solver.construction.no_wait.kernel import COUNT, EACH, FOUND, QUEUE, next_starts
from solver.parameters import tunable, tuned


@dataclass(frozen=True)
@tunable
class NoWaitParams:
    """Sizes of the search for the starts of micro-batches that do not wait."""

    branches: int = tuned(
        8, "starts of the next micro-batch that a node has as children", 1, 100,
        "18 cells of the atlas and 12 problems of seed 92, width 20: with 4 .02 % longer in the mean, .6 at most, in "
        ".6 of the time; with 16 the same values in 1.5 times",
    )  # fmt: skip
    tries: int = tuned(512, "starts tried for them", 1, 10_000, "the same 30 problems: the same values with 128")
    queue: int = tuned(
        1_000, "weight passes of the backwards in flight on a device at most", 1, 100_000,
        "the same 30 problems: the same values with 50",
    )  # fmt: skip
    step_share: float = tuned(
        0.5, "of the median pass: the least distance of two starts tried", 0.01, 1,
        "the same 30 problems: .25 is .2 % longer in the mean (-.4 to 5.8), 1 is 3.6 % (-2.3 to 27.2)",
    )  # fmt: skip


_PARAMS = NoWaitParams()


class _Node(NamedTuple):
    """The micro-batches placed so far, with starts in ticks: `in_flight`, in order, and `all_starts`, as linked pairs.

    `value` is the value in ticks of all their passes, `state` the state of the devices at the last start. The pairs end
    with None.
    """

    all_starts: tuple[Ticks, Any] | None
    in_flight: tuple[Ticks, ...]
    value: Ticks
    state: Any

    @property
    def start(self) -> Ticks:
        return self.in_flight[-1]

    @property
    def distances(self) -> tuple[Ticks, ...]:
        """Return how long before this micro-batch each one in flight began."""
        return tuple(self.start - start for start in self.in_flight)

    def starts(self) -> tuple[Ticks, ...]:
        """Return the starts of all micro-batches, in order."""
        found, linked = list[int](), self.all_starts
        while linked is not None:
            start, linked = linked
            found.append(start)
        return tuple(reversed(found))


class _Children:
    """Generator of the nodes with one micro-batch more, with the arrays that it writes to."""

    def __init__(self, block: Block) -> None:
        self._block, devices = block, len(block.room)
        self._step = max(1, int(_PARAMS.step_share * np.median(block.rows[:, TICKS])))
        self._found = np.empty((_PARAMS.branches, FOUND), np.int64)
        self._after = np.zeros((_PARAMS.branches, devices, QUEUE + EACH * _PARAMS.queue), np.int64)
        self._times = self._which = np.empty(0, np.int64)

    def first(self) -> Iterator[_Node]:
        """Yield the node of the first micro-batch, which starts at 0; nothing if it does not fit the memory."""
        yield from self._with(_Node(None, (), 0, np.zeros(self._after.shape[1:], np.int64)), 0, tries=1)

    def of(self, node: _Node) -> Iterator[_Node]:
        """Yield a node's children, by increasing start of the further micro-batch."""
        yield from self._with(node, node.start + 1, _PARAMS.tries)

    def _with(self, node: _Node, first: Ticks, tries: int) -> Iterator[_Node]:
        block, n = self._block, len(node.in_flight)
        passes = (n + 1) * int(np.diff(block.at).max())
        if passes > len(self._times):
            self._times, self._which = np.empty(2 * passes, np.int64), np.empty(2 * passes, np.int64)
        number = next_starts(
            block.rows, block.at, block.room, block.since, node.state, int64_array(node.in_flight), n, first,
            self._step, tries, self._found, self._after, self._times, self._which,
        )  # fmt: skip
        for start, value, after in zip(*self._found[:number].T.tolist(), self._after, strict=False):
            # A last pass of no time may run at this very start.
            still = tuple(one for one in node.in_flight if one + block.length >= start)
            used = QUEUE + EACH * int(after[:, COUNT].max())
            yield _Node((start, node.all_starts), (*still, start), value, after[:, :used].copy())


class BestStarts(NamedTuple):
    """Starts of all micro-batches in order, in ticks, the first 0.

    `all_kept` is True if no node was dropped for the width, so that a greater one would change nothing. `nodes` is the
    number of nodes whose children were made.
    """

    starts: tuple[Ticks, ...]
    all_kept: bool
    nodes: int


def best_starts(block: Block, microbatches: int, width: int, stop: Event) -> BestStarts | None:
    """Return the starts of the least value found; None if some micro-batch got none, or `stop` was set before the end.

    Layer by layer, one micro-batch each, the `width` nodes are kept of least last start + value of all passes; of nodes
    with micro-batches in flight at equal distances, the one whose last start is earlier. The last layer counts by value
    alone.
    """
    children = _Children(block)
    layer, all_kept, nodes = list(children.first()), True, 0
    for placed in range(1, microbatches):
        # A further micro-batch may begin sooner after an earlier one; of the last one only the value counts.
        early = placed + 1 < microbatches
        best, nodes = dict[tuple[int, ...], _Node](), nodes + len(layer)
        for child in (child for node in layer if not stop.is_set() for child in children.of(node)):
            known = best.setdefault(child.distances, child)
            if (early * child.start, child.value) < (early * known.start, known.value):
                best[child.distances] = child
        all_kept &= len(best) <= width
        by_value = [(early * node.start + node.value, node.in_flight, node) for node in best.values()]
        layer = [node for *_, node in nsmallest(width, by_value, key=itemgetter(0, 1))]
    if stop.is_set() or not layer:
        return None
    return BestStarts(min(layer, key=lambda node: node.value).starts(), all_kept, nodes)


def schedule_of(block: Block, starts: Sequence[Ticks]) -> Schedule:
    """Return the schedule of these starts: the passes of each device by their times, weight passes in the gaps.

    `starts` are those of the micro-batches in order, as `best_starts` returns them. The order is that by the times of
    `block`, which may be simplified ones.
    """
    rows = zip(block.at, block.at[1:], strict=False)
    return Schedule(tuple(tuple(_order(block, range(*own), starts)) for own in rows), "pipesched")


def _order(block: Block, rows: Sequence[int], starts: Sequence[Ticks]) -> Iterator[tuple[Pass]]:
    """Yield the passes of the device with these rows of the block, in order.

    Of those that begin at once, where some take no time, the earlier micro-batch's is first, as in the kernel. `starts`
    are the ticks at which the micro-batches begin.
    """
    passes = sorted((start + int(block.rows[k, OFFSET]), j, k) for j, start in enumerate(starts) for k in rows)
    waiting, free = deque[tuple[int, int, Pass]](), 0
    for at, j, k in passes:
        while waiting and max(free, waiting[0][0]) + waiting[0][1] <= at:
            begin, ticks, weight = waiting.popleft()
            free = max(free, begin) + ticks
            yield (weight,)
        kind, stage = block.of[k]
        free = at + int(block.rows[k, TICKS])
        yield (Pass(kind, stage, j),)
        if block.rows[k, WEIGHT]:
            waiting.append((free, int(block.rows[k, WEIGHT]), Pass(W, stage, j)))
        elif kind is B:
            yield (Pass(W, stage, j),)
    yield from ((weight,) for *_, weight in waiting)
