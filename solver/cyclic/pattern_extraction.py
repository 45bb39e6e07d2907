"""Extraction of a periodic pattern from the middle of a long schedule."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from formulations.cyclic.block_graph import BlockGraph
from formulations.cyclic.pattern import Copy, Pattern
from pipesched.problem.passes import BW, B, F, Pass, W
from pipesched.schedule.timeline import Timeline

_MOST_COPIES = 8


def read_pattern(timeline: Timeline, graph: BlockGraph) -> Pattern | None:
    """The best pattern of up to eight micro-batches that the middle of the timeline repeats; None if none fits.

    An order and how many repetitions apart its blocks are make a pattern, whatever the times: where the middle is not
    quite regular the pattern read off it may have another period, and is judged by its own.
    """
    best: Pattern | None = None
    for pattern in _readings(timeline, graph):
        try:
            period = pattern.period
            better = pattern.fits() and (best is None or period < best.period)
        except ValueError:
            continue
        if better:
            best = pattern
    return best


def _readings(timeline: Timeline, graph: BlockGraph) -> Iterator[Pattern]:
    shares = [held for held in timeline.problem.microbatches_of if held]
    fewest = min(map(len, shares))
    for copies in range(1, _MOST_COPIES + 1):
        middle = max(0, fewest // 2 - copies // 2)
        if middle + copies < fewest:
            pattern = _reading(timeline, graph, middle, copies)
            if pattern is not None:
                yield pattern


def _reading(timeline: Timeline, graph: BlockGraph, middle: int, copies: int) -> Pattern | None:
    """Micro-batches `middle` to `middle + copies` of every chain, repeated."""
    fusible = {f.backward for f in graph.fusions}
    starts: dict[Copy, int] = {}
    fused: set[Copy] = set()
    gaps: set[int] = set()
    for (kind, stage), block in graph.of_pass.items():
        first = timeline.problem.microbatches_of[stage].start + middle
        for i in range(copies + 1):
            j = first + i
            in_one = kind is not F and timeline.schedule.is_fused(stage, j)
            p = Pass(BW if in_one else kind, stage, j)
            at = timeline.start(p)
            backward = graph.of_pass[B, stage]
            if in_one and kind is W and backward not in fusible:
                # Run as B and W at once, which is no worse.
                at += graph.blocks[backward].ticks
            if i == copies:
                gaps |= {at - starts[Copy(block, 0)]} if kind is not W else set()
                break
            starts[Copy(block, i)] = at
            if in_one and block in fusible:
                fused.add(Copy(block, i))
    if len(gaps) != 1 or min(gaps) <= 0:
        return None
    return pattern_of(graph, copies, {x: Fraction(at) for x, at in starts.items()}, Fraction(min(gaps)), fused)


def pattern_of(
    graph: BlockGraph, copies: int, starts: dict[Copy, Fraction], length: Fraction, fused: set[Copy] | frozenset[Copy]
) -> Pattern:
    """The order on every ring that starts repeated every `length` ticks give."""
    cyclic_orders: list[tuple[Copy, ...]] = []
    repetitions: dict[Copy, dict[int, int]] = {x: {} for x in starts}
    for device, blocks in enumerate(graph.on_device):
        held = [Copy(b, i) for b in blocks for i in range(copies)]
        if not held:
            cyclic_orders.append(())
            continue
        anchor = starts[min(held, key=lambda x: starts[x])]
        for x in held:
            repetitions[x][device] = int((starts[x] - anchor) // length)
        # Blocks of zero duration may start together: then in the order of the micro-batch's own path.
        cyclic_orders.append(tuple(sorted(held, key=lambda x: ((starts[x] - anchor) % length, starts[x], x.block))))
    return Pattern(graph, copies, tuple(cyclic_orders), repetitions, frozenset(fused))
