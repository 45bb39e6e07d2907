"""Simulated annealing of the orders of a schedule: many fast moves, each evaluated exactly."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from formulations.window.order_units import Orders, Units
from pipesched.schedule.schedule import Schedule
from solver.local_search.annealing_kernel import anneal
from solver.local_search.moves import Array, Shop


class AnnealingParameters(NamedTuple):
    """The parameters of an annealing run.

    Temperatures are in mean pass durations; `evenness` is the weight of the mean over devices in the energy. A unit
    jumps over `reach` others at most, and `filling` is the share of moves that bring one from anywhere into an
    idle time.
    """

    hot: float
    cold: float
    evenness: float
    filling: float
    reach: int = 8


class Annealer:
    """Anneals orders of the units of one schedule."""

    def __init__(self, units: Units) -> None:
        self.units = units
        problem = units.problem
        feeds: list[list[tuple[int, int]]] = [[] for _ in units.slots]
        for number, needs in enumerate(units.needs):
            for before, lag in needs:
                feeds[before].append((number, lag))
        capacity = [-1 if c is None else c for c in problem.room]
        plain = (units.ticks, units.device, units.line, units.takes, units.gives, capacity)
        arrays = [np.array(values, np.int64) for values in plain]
        self.shop = Shop._make([*arrays, *_rows(units.needs), *_rows(feeds)])
        self.mean = sum(units.ticks) / max(1, len(units.ticks))

    def run(
        self,
        orders: Orders,
        openings: Sequence[int],
        heat: AnnealingParameters,
        moves: int,
        seed: int,
        halt: Array | None = None,
    ) -> Schedule | None:
        """The best order met in so many moves from the given one; None if it cannot be run.

        Setting `halt[0]` from another thread ends the run at once.

        `openings[d]` is the tick at which device d may start; times count from it. The same arguments give the same
        result.
        """
        order, count, place = self.packed(orders)
        best = order.copy()
        hot, cold = max(1e-6, heat.hot * self.mean), max(1e-9, heat.cold * self.mean)
        opening = np.array(openings, np.int64)
        halt = np.zeros(1, np.int64) if halt is None else halt
        found = anneal(
            self.shop,
            order,
            count,
            place,
            opening,
            hot,
            cold,
            moves,
            heat.evenness,
            heat.reach,
            heat.filling,
            seed,
            best,
            halt,
        )
        if found < 0:
            return None
        return self.units.schedule([row[:length].tolist() for row, length in zip(best, count, strict=True)])

    def packed(self, orders: Orders) -> tuple[Array, Array, Array]:
        """Orders as an array padded with -1, their lengths, and the place of every unit."""
        count = np.array([len(order) for order in orders], np.int64)
        packed = np.full((len(orders), max(1, count.max())), -1, np.int64)
        place = np.zeros(len(self.units.slots), np.int64)
        for device, order in enumerate(orders):
            packed[device, : len(order)] = order
            place[order] = np.arange(len(order))
        return packed, count, place


def _rows(lists: list[list[tuple[int, int]]]) -> tuple[Array, Array, Array]:
    """Lists of (unit, lag) as compressed rows."""
    at = np.cumsum([0] + [len(one) for one in lists])
    flat = np.array([pair for one in lists for pair in one], np.int64).reshape(-1, 2)
    return at.astype(np.int64), np.ascontiguousarray(flat[:, 0]), np.ascontiguousarray(flat[:, 1])
