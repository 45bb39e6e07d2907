"""Compilation of the relaxed decision diagram: dynamic programming over orders of modelled steps, layer by layer."""

from __future__ import annotations

from threading import Event

import numpy as np

from solver.diagram.completion import ENDLESS
from solver.diagram.expansion import expand
from solver.diagram.layers import Labels, Layer, Least, first_layer, joined, slices
from solver.diagram.projected_completion import ProjectedCompletions
from solver.diagram.reduction import reduced
from solver.diagram.repetition import ROUNDS, skip
from solver.diagram.steps import NEVER, NONE, Steps, longest_of

# Labels looked at by one call of compiled code, which nothing can interrupt; and in a layer, which has memory.
_AT_ONCE, _LAYER = 50_000, 4_000_000


def least_end(
    steps: Steps,
    width: int,
    work: int,
    stop: Event,
    guides: ProjectedCompletions,
    value: int = NEVER,
    until: int = ROUNDS,
    reached: list[Labels] | None = None,
) -> Least:
    """The least end of all orders; with completion bounds, of those that may end before `value`, or `value` itself.

    With one chain, rounds in which every step is taken once may be skipped after `until` of them, if there are neither
    completion bounds nor blocks. The states of each layer are added to `reached`, with the least of every time there.
    """
    count, best, used, merges, done = len(steps.ticks), NEVER, 0, False, 0
    layer = first_layer(steps, np.int32 if longest_of(steps) < ENDLESS else np.int64)
    none = Labels(layer.keys[:0], layer.labels[:0])
    further, rounds = none, list[Layer]()
    may_block, alike = (steps.blocks >= 0).any(), (steps.first == 0).all() and steps.owner in (NONE, steps.device[0])
    skips = alike and not len(guides.all) and not may_block
    while len(layer.keys) or len(further.keys):
        if reached is not None:
            reached.append(layer.least())
        near, far, size = [further], [none], 0
        for since, end in slices(layer.first, _AT_ONCE // (steps.slots + 1)):
            keys, labels, blocks, ended, seen = expand(layer, since, end, steps, done, guides, value)
            near.append(Labels(keys[~blocks], labels[~blocks]) if may_block else Labels(keys, labels))
            far.append(Labels(keys[blocks], labels[blocks]) if may_block else none)
            best, used, size = min(best, ended), used + seen, size + len(keys)
            if used > work or size > _LAYER or stop.is_set():
                return Least(None, used, True)
        now, further, done = joined(near), joined(far), done + 1
        order = np.argsort(now.keys, kind="stable")
        *parts, merges_here = reduced(now.keys[order], now.labels[order], width)
        layer, merges = Layer(*parts), merges or merges_here
        if skips and done % count == 0 and len(rounds) < until:
            rounds.append(layer)
            if len(rounds) == until:
                left = int(steps.microbatches[0]) - done // count - steps.slots - 1
                skipped, later = skip(rounds, steps, left)
                layer, done = layer._replace(labels=layer.labels + later), done + skipped * count
    best = min(best, value)
    return Least(best if best < NEVER else None, used, merges)
