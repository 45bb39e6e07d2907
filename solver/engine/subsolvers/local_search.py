"""Subsolver: local search from the best schedules, by annealing of orders on every core."""

from __future__ import annotations

from dataclasses import dataclass

from solver.engine.kernels import Kernels
from solver.engine.search import Search
from solver.engine.slices import Work


@dataclass(frozen=True)
class LocalSearch:
    """Local search from the best schedule and a few others; each slice continues where the one before ended."""

    name: str = "local search"
    parallel: bool = True
    restarts: bool = False

    def serves(self, search: Search) -> bool:
        return search.can_improve_orders

    def kernels(self, search: Search) -> Kernels:
        return search.kernels

    def work(self, search: Search) -> Work:
        while True:
            slice_ = yield
            if not search.improve_orders(slice_.limits(search.limits), search.done, search.offer_order):
                return
