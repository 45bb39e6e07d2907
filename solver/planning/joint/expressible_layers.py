"""Recomputation settings of training frameworks: conversion from a setting to a draft's numbers of layers, and back."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import NamedTuple

from pipesched.layers.recompute_rule import FULL, ROLES, modules_of, selections
from pipesched.layers.roles import Role, role_of
from solver.planning.joint.draft import Draft, StageSums


class ExpressibleLayers(NamedTuple):
    """One recomputation setting, the same on every stage.

    It is one of three: the `first` transformer layers of each stage are recomputed whole; or `everything` is; or in all
    layers only the modules of the list with index `modules` in `SelectedModes.lists` are. None, and 0 and False: no
    layer is.
    """

    first: int = 0
    everything: bool = False
    modules: int | None = None


class SelectedModes:
    """Tables of a model's transformer and multi-token-prediction layers, and of the modes that recompute them.

    The model and its modes are those of `sums`. A mode recomputes either the whole layer or selected modules of it.
    `mtp` is True if there are multi-token-prediction layers, `has_everything` if all of these layers can be recomputed
    whole.
    """

    def __init__(self, sums: StageSums) -> None:
        self._sums = sums
        layers = [(at, layer) for at, layer in enumerate(sums.plan.model.sequence) if role_of(layer.name) in ROLES]
        self._at = [at for at, _ in layers]
        self._mtp = [role_of(layer.name) is Role.MTP for _, layer in layers]
        self.mtp = any(self._mtp)
        self._whole = [self._number(layer.name, FULL) for _, layer in layers]
        self._selections = [
            [
                self._number(layer.name, [selection[layer.name]]) if layer.name in selection else None
                for _, layer in layers
            ]
            for selection in selections(sums.plan.model.kinds)
        ]
        self.has_everything = None not in self._whole and bool(layers)
        self._is_whole = [mode.name in FULL for _, mode in sums.modes]
        self._is_modules = [bool(modules_of(mode.name)) for _, mode in sums.modes]
        # By mode: how many of the first n layers are recomputed in it if all layers are recomputed whole.
        self._before = [
            list(accumulate((number == mode for number in self._whole), initial=0)) for mode in range(len(sums.modes))
        ]

    def _number(self, name: str, names: Sequence[str]) -> int | None:
        """Return the index in `StageSums.modes` of the first mode of layer type `name` that `names` contains.

        None if none is.
        """
        known = (at for at, (kind, mode) in enumerate(self._sums.modes) if kind.name == name and mode.name in names)
        return next(known, None)

    @property
    def lists(self) -> range:
        """Indices of the lists of modules that can be recomputed, from the list with the fewest modules on."""
        return range(len(self._selections))

    def whole(self, row: Sequence[int]) -> int:
        """Return the number of layers of a stage that are recomputed whole; `row` has its recomputed layers by mode."""
        return sum(number for number, is_whole in zip(row, self._is_whole, strict=True) if is_whole)

    def most(self, begin: int, end: int, with_mtp: bool = True) -> int:
        """Return how many consecutive transformer layers, from the first of a stage on, can be recomputed whole.

        The stage has the layers from `begin` up to, not including, `end`. Multi-token-prediction layers count as well;
        with `with_mtp` False the count stops at the first of them.
        """
        first, last = bisect_left(self._at, begin), bisect_left(self._at, end)
        for at in range(first, last):
            if self._whole[at] is None or (self._mtp[at] and not with_mtp):
                return at - first
        return last - first

    def most_of(self, cuts: Sequence[int]) -> int:
        """Return the largest number of leading transformer layers that any stage can recompute whole.

        `cuts` are the numbers of layers before each stage; the last entry is the number of all layers.
        """
        return max(self.most(begin, end, with_mtp=False) for begin, end in pairwise(cuts))

    def leading(self, begin: int, end: int, number: int, with_mtp: bool = True) -> tuple[int, ...]:
        """Return the recomputed layers by mode if a stage recomputes its first `number` layers whole.

        If it cannot, it recomputes as many as it can. The stage has the layers from `begin` up to, not including,
        `end`. With `with_mtp` False, its first multi-token prediction layer and all after it are not recomputed.
        """
        first = bisect_left(self._at, begin)
        last = first + min(number, self.most(begin, end, with_mtp))
        return tuple(before[last] - before[first] for before in self._before)

    def draft_of(self, cuts: tuple[int, ...], setting: ExpressibleLayers) -> Draft:
        """Return the draft with these cuts and the recomputation setting `setting`."""
        stages = list(pairwise(cuts))
        if setting.modules is not None:
            return Draft(cuts, tuple(self._row_of_list(setting.modules, begin, end) for begin, end in stages))
        number = len(self._at) if setting.everything else setting.first
        return Draft(cuts, tuple(self.leading(begin, end, number, setting.everything) for begin, end in stages))

    def _row_of_list(self, number: int, begin: int, end: int) -> tuple[int, ...]:
        row = [0] * len(self._sums.modes)
        for at in range(bisect_left(self._at, begin), bisect_left(self._at, end)):
            mode = self._selections[number][at]
            if mode is not None:
                row[mode] += 1
        return tuple(row)

    def weakest_setting(self, rows: Sequence[Sequence[int]]) -> ExpressibleLayers:
        """Return the setting that stands for the recomputed layers `rows`, by stage and mode, and may recompute more.

        If modules are recomputed somewhere, it is the first list with all the modes in use for that, else the last
        list; layers recomputed whole are then ignored. If all layers are recomputed whole, it is `everything`, else the
        number of the stage that recomputes the most.
        """
        used = {mode for row in rows for mode, number in enumerate(row) if number and self._is_modules[mode]}
        if used and self._selections:
            fitting = (number for number in self.lists if used <= set(self._selections[number]))
            return ExpressibleLayers(modules=next(fitting, self.lists[-1]))
        total = sum(map(self.whole, rows))
        if total and total == len(self._at):
            return ExpressibleLayers(len(self._at), everything=True)
        return ExpressibleLayers(max(map(self.whole, rows), default=0))
