"""Subsolver: destructive lower bounds, where CP-SAT refutes thresholds on some devices or on all."""

from __future__ import annotations

from dataclasses import dataclass

from solver.engine.destructive_slice import refute
from solver.engine.kernels import Kernels
from solver.engine.search import Search
from solver.engine.slices import Work


@dataclass(frozen=True)
class DestructiveBounds:
    """Refute thresholds, one above the other, by CP-SAT; schedules found by the model of all devices are offered."""

    name: str = "destructive bounds"
    parallel: bool = False
    restarts: bool = True

    def serves(self, search: Search) -> bool:
        return search.engine.raise_bounds

    def kernels(self, _: Search) -> Kernels | None:
        return None

    def work(self, search: Search) -> Work:
        while True:
            slice_ = yield
            if not refute(search, slice_):
                return
