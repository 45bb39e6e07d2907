"""Recomputation that runtimes' settings can express, as rows of a draft, and read off them."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import NamedTuple

from pipesched.layers.recompute_rule import FULL, ROLES, modules_of, selections
from pipesched.layers.roles import Role, role_of
from solver.planning.joint.draft import Draft, StageSums


class ExpressibleLayers(NamedTuple):
    """The `first` transformer layers of each stage; or `everything`; or the `modules` of a list, by its number."""

    first: int = 0
    everything: bool = False
    modules: int | None = None


class SelectedModes:
    """Of a model's transformer and multi-token prediction layers, those recomputed whole and by modules."""

    def __init__(self, sums: StageSums) -> None:
        self._sums = sums
        layers = [(at, layer) for at, layer in enumerate(sums.plan.model.sequence) if role_of(layer.name) in ROLES]
        self._at = [at for at, _ in layers]
        self._mtp = [role_of(layer.name) is Role.MTP for _, layer in layers]
        self.mtp = any(self._mtp)
        self._whole = [self._number(layer.name, FULL) for _, layer in layers]
        self._selections = [
            [self._number(layer.name, [said[layer.name]]) if layer.name in said else None for _, layer in layers]
            for said in selections(sums.plan.model.kinds)
        ]
        self.has_everything = None not in self._whole and bool(layers)
        self._is_whole = [way.name in FULL for _, way in sums.ways]
        self._is_modules = [bool(modules_of(way.name)) for _, way in sums.ways]
        # Of each way how many of the first so many layers are recomputed in it, where all of them are.
        self._before = [
            list(accumulate((number == way for number in self._whole), initial=0)) for way in range(len(sums.ways))
        ]

    def _number(self, name: str, ways: Sequence[str]) -> int | None:
        """The first of these modes that a layer has."""
        known = (at for at, (kind, way) in enumerate(self._sums.ways) if kind.name == name and way.name in ways)
        return next(known, None)

    @property
    def lists(self) -> range:
        """The numbers of the lists of modules, from those that say least."""
        return range(len(self._selections))

    def whole(self, row: Sequence[int]) -> int:
        """The layers recomputed whole on a stage."""
        return sum(number for number, is_whole in zip(row, self._is_whole, strict=True) if is_whole)

    def most(self, begin: int, end: int, with_mtp: bool = True) -> int:
        """The number of a stage's layers that can be recomputed, from its first one on."""
        first, last = bisect_left(self._at, begin), bisect_left(self._at, end)
        for at in range(first, last):
            if self._whole[at] is None or (self._mtp[at] and not with_mtp):
                return at - first
        return last - first

    def most_of(self, cuts: Sequence[int]) -> int:
        """The most transformer layers of any stage, of those that can be recomputed."""
        return max(self.most(begin, end, with_mtp=False) for begin, end in pairwise(cuts))

    def leading(self, begin: int, end: int, number: int, with_mtp: bool = True) -> tuple[int, ...]:
        """A stage's row where its first so many layers are recomputed whole, as far as it has them."""
        first = bisect_left(self._at, begin)
        last = first + min(number, self.most(begin, end, with_mtp))
        return tuple(before[last] - before[first] for before in self._before)

    def told(self, cuts: tuple[int, ...], said: ExpressibleLayers) -> Draft:
        """The draft of these cuts."""
        stages = list(pairwise(cuts))
        if said.modules is not None:
            return Draft(cuts, tuple(self._row_of_list(said.modules, begin, end) for begin, end in stages))
        number = len(self._at) if said.everything else said.first
        return Draft(cuts, tuple(self.leading(begin, end, number, said.everything) for begin, end in stages))

    def _row_of_list(self, number: int, begin: int, end: int) -> tuple[int, ...]:
        row = [0] * len(self._sums.ways)
        for at in range(bisect_left(self._at, begin), bisect_left(self._at, end)):
            way = self._selections[number][at]
            if way is not None:
                row[way] += 1
        return tuple(row)

    def said_by(self, rows: Sequence[Sequence[int]]) -> ExpressibleLayers:
        """The recomputation of the rows or, where only that is expressible, of more layers."""
        used = {way for row in rows for way, number in enumerate(row) if number and self._is_modules[way]}
        if used and self._selections:
            fitting = (number for number in self.lists if used <= set(self._selections[number]))
            return ExpressibleLayers(modules=next(fitting, self.lists[-1]))
        total = sum(map(self.whole, rows))
        if total and total == len(self._at):
            return ExpressibleLayers(len(self._at), everything=True)
        return ExpressibleLayers(max(map(self.whole, rows), default=0))
