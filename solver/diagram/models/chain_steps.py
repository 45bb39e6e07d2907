"""Model of the steps of some stages' chains, with blocks; similar labels are merged, so the diagram is relaxed.

A node is a state with one of its labels. A block of a forward and a gradient leads two layers further.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from threading import Event

import numpy as np

from pipesched.problem.quantities import Ticks
from solver.diagram.compile import compiled_within
from solver.diagram.completion import ENDLESS
from solver.diagram.expansion import expand
from solver.diagram.layers import Labels, Layer, Least, first_layer, joined, slices
from solver.diagram.model import Children, ReducedLayer
from solver.diagram.projected_completion import ProjectedCompletions
from solver.diagram.reduction import reduced
from solver.diagram.repetition import ROUNDS, skip
from solver.diagram.steps import NEVER, NONE, Steps, longest_of

# Labels per call of compiled code, which cannot be interrupted; and labels per layer, limited by memory.
_AT_ONCE, _LAYER = 50_000, 4_000_000


class ChainSteps:
    """Model of the orders that the completion bounds admit before `value` ticks; at most `width` labels per state.

    `completions` are these bounds, which may be empty. With one chain, and neither completion bounds nor blocks, rounds
    may be skipped after the first `until`; in a round every step is taken once. If `reached` is a list, the states of
    each layer are appended to it, with the least of every time.
    """

    def __init__(
        self,
        steps: Steps,
        width: int,
        completions: ProjectedCompletions,
        value: Ticks,
        until: int,
        reached: list[Labels] | None,
    ) -> None:
        self._steps, self._width, self._completions, self._value = steps, width, completions, value
        self._until, self._reached, self._rounds = until, reached, list[Layer]()
        self.root = first_layer(steps, np.int32 if longest_of(steps) < ENDLESS else np.int64)
        self._may_block = bool((steps.blocks >= 0).any())
        alike = (steps.first == 0).all() and steps.owner in (NONE, steps.device[0])
        self._skips = alike and not len(completions.all) and not self._may_block

    def expanded(self, layer: Layer, done: int) -> Iterator[Children]:
        """Yield the labels one step later, and two steps later by a block.

        They come in parts that one call of compiled code takes. Labels that completion bounds exclude are left out; the
        ends of complete orders are the children's values. `done` is the number of steps run before the layer.
        """
        if self._reached is not None:
            self._reached.append(layer.least())
        for since, end in slices(layer.first, _AT_ONCE // (self._steps.slots + 1)):
            keys, labels, blocks, ended, seen = expand(
                layer, since, end, self._steps, done, self._completions, self._value
            )
            every = Labels(keys, labels)
            near, far = (every.where(~blocks), every.where(blocks)) if self._may_block else (every, None)
            yield Children((near,) if far is None else (near, far), seen, ended if ended < NEVER else None)

    def reduced(self, parts: Sequence[Labels], done: int) -> ReducedLayer:
        """Return layer number `done`, with dominated labels pruned and those beyond the width merged.

        Where labels repeat from round to round, it is the layer of a later round, and those between are skipped.
        `parts` are the labels that earlier layers lead to, unsorted.
        """
        now = joined([Labels(self.root.keys[:0], self.root.labels[:0]), *parts])
        order = np.argsort(now.keys, kind="stable")
        *columns, merged = reduced(now.keys[order], now.labels[order], self._width)
        layer, skipped, count = Layer(*columns), 0, len(self._steps.ticks)
        if self._skips and done % count == 0 and len(self._rounds) < self._until:
            self._rounds.append(layer)
            if len(self._rounds) == self._until:
                left = int(self._steps.microbatches[0]) - done // count - self._steps.slots - 1
                rounds, later = skip(self._rounds, self._steps, left)
                layer, skipped = layer._replace(labels=layer.labels + later), rounds * count
        return ReducedLayer(layer, merged, skipped=skipped)


def least_end(
    steps: Steps,
    width: int,
    work: int,
    stop: Event,
    completions: ProjectedCompletions,
    value: Ticks = NEVER,
    until: int = ROUNDS,
    reached: list[Labels] | None = None,
) -> Least:
    """Return the least end in ticks of all orders of the steps, with at most `width` labels kept per state.

    With completion bounds it is the least end of orders that may end before `value`, or `value` if that is less. After
    `until` rounds, in each of which every step runs once, further rounds may be skipped. If `reached` is a list, the
    states of each layer are appended to it, with the least of every time. The ticks are None after a stop, after more
    than `work` labels or more in one layer than memory allows, and if no order ends and there is no `value`.
    """
    found = compiled_within(ChainSteps(steps, width, completions, value, until, reached), stop, work, _LAYER)
    if not found.finished:
        return Least(None, found.looked, True)
    best = value if found.value is None else min(found.value, value)
    return Least(best if best < NEVER else None, found.looked, found.merged)
