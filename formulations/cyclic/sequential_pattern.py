"""The pattern of least memory: all blocks of one micro-batch before any of the next."""

from __future__ import annotations

from formulations.cyclic.block_graph import BlockGraph
from formulations.cyclic.pattern import Copy, Pattern


def sequential_pattern(graph: BlockGraph) -> Pattern:
    """Return the pattern that runs all blocks of one micro-batch (of each chain) before any of the next.

    It has one copy, no fused backward, no overlapped pair, and the least memory of all patterns.
    """
    follows: list[list[int]] = [[] for _ in graph.blocks]
    missing = [0] * len(graph.blocks)
    for wait in graph.waits:
        follows[wait.before].append(wait.after)
        missing[wait.after] += 1
    ready = [b for b, count in enumerate(missing) if count == 0][::-1]
    sequence: list[int] = []
    while ready:
        sequence.append(ready.pop())
        for after in follows[sequence[-1]]:
            missing[after] -= 1
            if missing[after] == 0:
                ready.append(after)
    cyclic_orders = tuple(
        tuple(Copy(b, 0) for b in sequence if device in graph.blocks[b].devices)
        for device in range(len(graph.capacity))
    )
    repetitions = {Copy(b, 0): dict.fromkeys(block.devices, 0) for b, block in enumerate(graph.blocks)}
    return Pattern(graph, 1, cyclic_orders, repetitions)
