"""Extraction of a periodic pattern from the middle of a long schedule."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from math import inf

import numpy as np

from formulations.cyclic.block_graph import BlockGraph
from formulations.cyclic.pattern import Copy, Pattern
from pipesched.problem.network.task_network import TaskType
from pipesched.problem.passes import BW, B, F, Pass, PassKind, Task, W
from pipesched.problem.quantities import StageId
from pipesched.schedule.stream_orders import stream_orders
from pipesched.schedule.timeline import Timeline
from solver.parameters import tunable, tuned


@dataclass(frozen=True)
@tunable
class ExtractionParams:
    """Length of the patterns that are looked for in a long schedule."""

    most_copies: int = tuned(8, "micro-batches of each chain in one period", 1, 64)
    ends: float = tuned(0.15, "of the micro-batches at each end, where the schedule is not steady yet", 0, 0.45)


_PARAMS = ExtractionParams()


# True if a pattern is wanted; the number is that of its first micro-batch in the chain.
Accept = Callable[[Pattern, int], bool]


def read_pattern(timeline: Timeline, graph: BlockGraph, accept: Accept = lambda *_: True) -> Pattern | None:
    """Return the pattern of least period that some consecutive micro-batches in the middle of the timeline repeat.

    None if there is none that fits the memory of `graph` and for which `accept(pattern, middle)` is True; `middle` is
    the micro-batch, counted from the first of each chain, that stands for the pattern's first one. `graph` is of the
    timeline's problem, with any number of micro-batches. A pattern is an order of blocks (here passes or tasks) with
    the number of repetitions between them, whatever the times. If the middle is not quite regular, the pattern may have
    another period than the schedule, and is judged by its own. It may also have more micro-batches in flight than the
    schedule, unless `accept` refuses that.
    """
    best: Pattern | None = None
    for pattern, middle in _readings(timeline, graph):
        try:
            period = pattern.period
            better = pattern.fits() and (best is None or period < best.period) and accept(pattern, middle)
        except ValueError:
            continue
        if better:
            best = pattern
    return best


def read_pattern_anywhere(timeline: Timeline, graph: BlockGraph) -> Pattern | None:
    """Return the pattern of least period that repeats at least once anywhere but at the ends of the timeline.

    None if there is none that fits the memory of `graph`. A schedule found by search need not be regular in its very
    middle.
    """
    shares = [share for share in timeline.problem.microbatches_of if share]
    fewest = min(map(len, shares))
    starts = np.array(
        [
            [timeline.starts[Task(_pass_of(timeline, kind, stage, j), part)] for j in walked[:fewest]]
            for kind, stage, part in graph.of_task
            if kind is not W
            for walked in [timeline.problem.microbatches_of[stage]]
        ]
    )
    partner = _partners(timeline)
    best: Pattern | None = None
    shortest: Fraction | float = inf
    begin = max(1, round(_PARAMS.ends * fewest))
    for copies in range(1, min(_PARAMS.most_copies, fewest - 2 * begin) + 1):
        gaps = starts[:, copies:] - starts[:, :-copies]
        regular = np.flatnonzero((gaps == gaps[0]).all(axis=0))
        lengths = set[int]()
        for middle in regular[(regular >= begin) & (regular < fewest - begin - copies)].tolist():
            length = int(gaps[0, middle])
            if length in lengths or length >= shortest * copies * graph.microbatches:
                continue
            lengths.add(length)
            pattern = _reading(timeline, partner, graph, middle, copies)
            with suppress(ValueError):  # an order whose passes wait for each other has no period
                if pattern is not None and pattern.period < shortest and pattern.fits():
                    best, shortest = pattern, pattern.period
    return best


def _pass_of(timeline: Timeline, kind: PassKind, stage: StageId, j: int) -> Pass:
    """Return the pass of micro-batch `j` that runs a forward (F) or a gradient (B).

    For a gradient it may have a full backward.
    """
    return Pass(BW if kind is B and timeline.schedule.is_fused(stage, j) else kind, stage, j)


def _readings(timeline: Timeline, graph: BlockGraph) -> Iterator[tuple[Pattern, int]]:
    shares = [microbatches for microbatches in timeline.problem.microbatches_of if microbatches]
    fewest = min(map(len, shares))
    partner = _partners(timeline)
    for copies in range(1, _PARAMS.most_copies + 1):
        middle = max(0, fewest // 2 - copies // 2)
        if middle + copies < fewest:
            pattern = _reading(timeline, partner, graph, middle, copies)
            if pattern is not None:
                yield pattern, middle


def is_order_of(pattern: Pattern, timeline: Timeline, middle: int) -> bool:
    """Return True if every device runs its forwards and gradients in the pattern's cyclic order for one period.

    The comparison begins at a forward of the pattern and ends at the same forward of the next period, with the
    pattern's offsets of micro-batches. `middle` is the micro-batch that stands for the pattern's first one, counted
    from the first of each chain.
    """
    graph, problem = pattern.graph, timeline.problem
    roles = {block: task for task, block in graph.of_task.items() if task.kind is not W}
    turns: dict[int, list[tuple[int, int]]] = {}
    in_slots = ([Task(p) for slot in order for p in slot] for order in timeline.schedule.orders)
    orders = stream_orders(problem, timeline.schedule).values() if not problem.network.blocks else in_slots
    for order in orders:
        for task in order:
            kind, stage, j = task.of
            block = graph.of_task.get(TaskType(B if kind is BW else kind, stage, task.part))
            if block in roles:
                number = j - problem.microbatches_of[stage].start - middle
                turns.setdefault(graph.blocks[block].devices[0], []).append((block, number))
    for device, cyclic_order in enumerate(pattern.cyclic_orders):
        in_order = [x for x in cyclic_order if x.block in roles]
        if in_order:
            first, apart = in_order[0], pattern.repetitions
            begin, end = (first.block, first.copy), (first.block, first.copy + pattern.copies)
            here = [(x.block, x.copy + (apart[first][device] - apart[x][device]) * pattern.copies) for x in in_order]
            found = turns[device]
            if begin not in found or end not in found or found[found.index(begin) : found.index(end)] != here:
                return False
    return True


def _partners(timeline: Timeline) -> dict[Pass, Pass]:
    """Return the backward that each forward in an overlapped block runs with."""
    slots = (slot for order in timeline.schedule.orders for slot in order)
    return {slot[0]: slot[1] for slot in slots if len(slot) == 2 and timeline.in_block(slot[0])}


def _reading(
    timeline: Timeline, partner: Mapping[Pass, Pass], graph: BlockGraph, middle: int, copies: int
) -> Pattern | None:
    """Return the pattern that repeats micro-batches `middle` to before `middle + copies` of every chain.

    Micro-batches are counted from the first of each chain; `partner` has the backward in a block with each forward.
    None if the distances of forwards and gradients to their next repetition differ, or if passes of several tasks have
    full backwards.
    """
    overlaps = {(one.forward, one.backward) for one in graph.overlaps}
    fusible = {f.backward for f in graph.fusions}
    starts: dict[Copy, int] = {}
    fused: set[Copy] = set()
    gaps: set[int] = set()
    overlapped: set[tuple[Copy, Copy]] = set()
    several = len(graph.of_task) > len(graph.of_pass)
    for (kind, stage, part), block in graph.of_task.items():
        first = timeline.problem.microbatches_of[stage].start + middle
        for i in range(copies + 1):
            j = first + i
            in_one = kind is not F and timeline.schedule.is_fused(stage, j)
            if in_one and several and timeline.problem.network.gradient is B:
                return None  # passes of several tasks have no fused backward among the blocks
            p = Pass(BW if in_one else kind, stage, j)
            at = timeline.starts[Task(p, part)]
            backward = graph.of_pass[B, stage]
            if in_one and kind is W and backward not in fusible:
                # It runs as B directly followed by W, which is no worse.
                at += graph.blocks[backward].ticks
            if i == copies:
                gaps |= {at - starts[Copy(block, 0)]} if kind is not W else set()
                break
            starts[Copy(block, i)] = at
            if in_one and block in fusible:
                fused.add(Copy(block, i))
            other = partner.get(p)
            if other is not None and (block, graph.of_pass[B, other.stage]) in overlaps:
                later = other.microbatch - timeline.problem.microbatches_of[other.stage].start - middle
                overlapped.add((Copy(block, i), Copy(graph.of_pass[B, other.stage], later % copies)))
    if len(gaps) != 1 or min(gaps) <= 0:
        return None
    return pattern_of(
        graph, copies, {x: Fraction(at) for x, at in starts.items()}, Fraction(min(gaps)), fused, overlapped
    )


def pattern_of(
    graph: BlockGraph,
    copies: int,
    starts: Mapping[Copy, Fraction],
    length: Fraction,
    fused: Collection[Copy] = (),
    overlapped: Collection[tuple[Copy, Copy]] = (),
) -> Pattern:
    """Return the pattern with the order on every device that these starts give, if they repeat every `length` ticks.

    `copies` micro-batches of each chain are repeated; `starts` has the start of each copy, in ticks from any instant;
    `fused` are the copies of B that run as full backwards. A forward and a backward in `overlapped` run one after the
    other if they do not start together in every repetition.
    """
    together = {(f, b) for f, b in overlapped if (starts[f] - starts[b]) % length == 0}
    forward_of = {backward: forward for forward, backward in together}
    paired = {x for pair in together for x in pair}
    lasting = {one.backward for one in graph.fusions if one.ticks}
    fused_ticks = {x for x in fused if x.block in lasting}
    cyclic_orders: list[tuple[Copy, ...]] = []
    repetitions: dict[Copy, dict[int, int]] = {x: {} for x in starts}
    for device, blocks in enumerate(graph.on_device):
        copies_there = [Copy(b, i) for b in blocks for i in range(copies)]
        if not copies_there:
            cyclic_orders.append(())
            continue
        anchor = starts[min(copies_there, key=lambda x: starts[x])]
        for x in copies_there:
            repetitions[x][device] = int((starts[x] - anchor) // length)

        def key(x: Copy, anchor: Fraction = anchor) -> tuple[Fraction, bool, Fraction, int, int, int, bool]:
            # Blocks of zero duration may start together with others: they are ordered along the micro-batch's path, and
            # ahead of a block that takes time, after which they would start later.
            first = forward_of.get(x, x)
            lasts = x in fused_ticks or x in paired or graph.blocks[x.block].ticks > 0
            place, depth = (starts[x] - anchor) % length, graph.depth[first.block]
            return place, lasts, starts[first], depth, first.block, first.copy, x in forward_of

        cyclic_orders.append(tuple(sorted(copies_there, key=key)))
    return Pattern(graph, copies, tuple(cyclic_orders), repetitions, frozenset(fused), frozenset(together))
