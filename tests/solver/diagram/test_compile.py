"""The compiler, of a model that is no pipeline: paths of jumps through layers, exact, relaxed and restricted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from random import Random
from threading import Event

import numpy as np
import pytest

from solver.diagram.compile import compilation, compiled_within
from solver.diagram.model import Arcs, Children, ReducedLayer

# A path goes one or two layers further at a time; its place is a remainder, and a jump costs by layer, place and jump.
_LAYERS, _PLACES = 7, 5
_JUMPS = ((1, 1), (1, 3), (2, 2), (2, 0))


class _Nodes(list[tuple[int, int, int, int, int]]):
    """Of each node the place, the costs so far, the layer and the number of its parent, and the jump."""

    @property
    def size(self) -> int:
        return len(self)


class _Jumps:
    """With a width of None exact; beyond it places are merged (each then may be any of those), or dropped."""

    def __init__(self, seed: int, width: int | None = None, merge: bool = False, dead_ends: float = 0.1) -> None:
        random, (self.width, self.merge) = Random(seed), (width, merge)
        self.cost = {
            (layer, place, jump): None if random.random() < dead_ends else random.randrange(100)
            for layer in range(_LAYERS)
            for place in range(_PLACES)
            for jump in range(len(_JUMPS))
        }
        self.root = _Nodes([(0, 0, 0, 0, -1)])

    def expanded(self, layer: _Nodes, done: int) -> Iterator[Children]:
        for number, (place, costs, *_) in enumerate(layer):
            ahead, value, last = (_Nodes(), _Nodes()), None, None
            # A merged node (-1) may be at any place, and so it costs as little as at any.
            places = range(_PLACES) if place < 0 else (place,)
            for jump, (further, by) in enumerate(_JUMPS):
                found = [own for one in places if (own := self.cost[done, one, jump]) is not None]
                if not found or done + further > _LAYERS:
                    continue
                total = costs + min(found)
                if done + further == _LAYERS:
                    if value is None or total < value:
                        value, last = total, None if self.merge else (number, jump)
                    continue
                after = place if place < 0 else (place + by) % _PLACES
                ahead[further - 1].append((after, total, done, number, jump))
            yield Children(ahead, 1, value, last)

    def reduced(self, parts: Sequence[_Nodes], done: int) -> ReducedLayer:
        assert 0 < done < _LAYERS
        best = dict[int, tuple[int, int, int, int, int]]()
        for node in sorted((node for part in parts for node in part), key=lambda node: node[1]):
            best.setdefault(node[0], node)
        nodes, merged = _Nodes(best.values()), False
        if self.width is not None and len(nodes) > self.width:
            more = nodes[self.width - 1 :] if self.merge else []
            nodes, merged = _Nodes(nodes[: self.width - self.merge]), self.merge
            nodes += [(-1, *one[1:]) for one in more[:1]]  # the first costs least
        columns = np.array(nodes, np.int64).reshape(-1, 5).T
        return ReducedLayer(nodes, merged, None if self.merge else Arcs(columns[2], columns[3], columns[4]))


def _paths(model: _Jumps, layer: int, place: int) -> Iterator[tuple[int, list[int]]]:
    """Costs and jumps of each path to the last layer."""
    if layer == _LAYERS:
        yield 0, []
    for jump, (further, by) in enumerate(_JUMPS if layer < _LAYERS else ()):
        own = model.cost[layer, place, jump]
        if own is not None and layer + further <= _LAYERS:
            for costs, jumps in _paths(model, layer + further, (place + by) % _PLACES):
                yield own + costs, [jump, *jumps]


@pytest.mark.parametrize("dead_ends", [0.1, 0.5])
def test_exact_is_brute_force_relaxed_is_below_and_restricted_above(dead_ends: float) -> None:
    strict = {"relaxed": 0, "restricted": 0, "none": 0, "merged": 0}
    for seed in range(60):
        of = partial(_Jumps, seed, dead_ends=dead_ends)
        paths = [*_paths(of(), 0, 0)]
        least = min(paths, default=None)
        exact = compiled_within(of(), Event())
        assert exact.finished and not exact.merged and exact.value == (None if least is None else least[0])
        assert (exact.value, exact.moves) in [*paths, (None, [])]
        for width in (2, 3):
            relaxed = compiled_within(of(width=width, merge=True), Event())
            restricted = compiled_within(of(width=width), Event())
            assert exact.value is None or (relaxed.value is not None and relaxed.value <= exact.value)
            if restricted.value is not None:
                assert exact.value is not None and restricted.value >= exact.value
                assert (restricted.value, restricted.moves) in paths
            strict["relaxed"] += relaxed.value != exact.value
            strict["restricted"] += restricted.value != exact.value
            strict["merged"] += relaxed.merged
        strict["none"] += least is None
    assert all(count > 3 for name, count in strict.items() if name != "none" or dead_ends > 0.1), strict


def test_work_children_and_stops_end_it_without_a_value() -> None:
    whole = compiled_within(_Jumps(1), Event())
    assert whole.value is not None and compiled_within(_Jumps(1), Event(), whole.looked) == whole
    for ended in (
        compiled_within(_Jumps(1), Event(), whole.looked - 1),
        compiled_within(_Jumps(1), Event(), most_children=2),
    ):
        assert not ended.finished and ended.value is None and 0 < ended.looked <= whole.looked
    stop = Event()
    stop.set()
    assert compiled_within(_Jumps(1), stop).looked == 1


def test_each_part_is_a_pause_with_its_work() -> None:
    run = compilation(_Jumps(1))
    looked = [progress.looked for progress in run]
    assert looked == list(range(1, len(looked) + 1))


class _Repeated(_Jumps):
    """Of jumps of one layer to one place, each of cost 1; layers from the third on are skipped up to the last but one."""

    def __init__(self) -> None:
        super().__init__(0, merge=True)
        self.cost = {key: 1 if key[2] == 0 else None for key in self.cost}
        self.asked = list[int]()

    def reduced(self, parts: Sequence[_Nodes], done: int) -> ReducedLayer:
        kept = super().reduced(parts, done)
        self.asked.append(done)
        if done != 3:
            return kept
        skipped = _LAYERS - 1 - done
        later = _Nodes((place, costs + skipped, *last) for place, costs, *last in kept.layer)
        return kept._replace(layer=later, skipped=skipped)


def test_layers_that_repeat_are_skipped() -> None:
    model = _Repeated()
    assert compiled_within(model, Event()).value == _LAYERS and model.asked == [1, 2, 3]
