"""Simulated annealing of the orders and modes of a schedule: many fast moves, each evaluated exactly."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np

from pipesched.deadline import SHORT, asking
from pipesched.int64_arrays import IntArray, int64_array
from pipesched.problem.fused_dominance import fused_is_dominated
from pipesched.problem.passes import B, F, W
from pipesched.problem.quantities import MemorySteps
from pipesched.schedule.schedule import Schedule
from solver.local_search.annealing_kernel import Best, Work, anneal, anneal_with_modes
from solver.local_search.annealing_run import AnnealingRun
from solver.local_search.arrays import Modes, Rows, Shop
from solver.local_search.exchange import exchangeable
from solver.local_search.incremental_simulation import times_of
from solver.local_search.mode_edits import MOST_EDITS
from solver.local_search.modes import BACKWARD, FORWARD, FUSED, ROLE, WEIGHT, attach, renew
from solver.local_search.units.operation_units import NONE, Operations
from solver.local_search.units.order_units import Orders, UnitId

_NO_MODES = np.zeros(0, np.int64)


class AnnealedSchedule(NamedTuple):
    """Best schedule of an annealing run, and its value: the longest time of a device from its opening.

    The value is in ticks if the units are passes, in steps if they are jobs. `schedule` is None if the memory of its
    order is not safe for every timing.
    """

    value: int
    schedule: Schedule | None


class Ordered(Protocol):
    """Interface of numbered units (passes, blocks or jobs) that annealing reorders on their devices; lists are by unit.

    Times (`ticks`, and the lags of `needs`) are ticks for passes and blocks, steps for jobs, of which each stream
    counts as a device. `needs` are the (unit, lag) pairs of the predecessors, with the least time from the end of that
    unit to the start of this one. `takes` is the memory taken at the start, `gives` what is freed at the end. Units of
    one `line` keep their order.
    """

    ticks: list[int]
    device: list[int]
    line: list[int]
    takes: list[MemorySteps]
    gives: list[MemorySteps]
    needs: list[list[tuple[UnitId, int]]]
    orders: Orders

    @property
    def room(self) -> Sequence[MemorySteps | None]:
        """Memory capacity of each device in steps of memory, None without a limit."""


class Movable(Ordered, Protocol):
    """Interface of units whose orders determine a schedule, as all modes are fixed."""

    def schedule(self, orders: Orders, /) -> Schedule | None:
        """Return the schedule of these orders; None if its memory is not safe for every timing."""


def annealed(
    shop: Shop,
    modes: Modes | None,
    rows: Rows,
    groups: IntArray,
    opening: IntArray,
    how: AnnealingRun,
    moves: int,
    seed: int,
    halt: IntArray | None = None,
) -> tuple[int, Best] | None:
    """Return the least value met in `moves` moves from `rows`, and its orders and modes; None if `rows` deadlock.

    The value is the longest time of a device d from `opening[d]` to its end. It and the temperatures of `how` are in
    the time of the units: ticks for passes, steps for jobs. Rows of `groups` are units that may change places together
    (`exchangeable`). `rows`, and where modes are open (`modes` is not None) `shop` and `modes`, are changed in place.
    Another thread ends the run by setting `halt[0]`. `seed` is that of the random numbers. If the first half of a run
    with `how.leaving` finds nothing better than its start, only values of the second half count.
    """
    count = len(rows.place)
    joined = (_NO_MODES, _NO_MODES) if modes is None else (modes.mate.copy(), modes.of[:, FUSED].copy())
    best = Best(rows.order.copy(), rows.count.copy(), *joined)
    work = Work(np.zeros(count, np.int64), np.zeros(count, np.int64), np.zeros_like(rows.order))
    halt = np.zeros(1, np.int64) if halt is None else halt
    kernel = anneal if modes is None else anneal_with_modes
    found = kernel(shop, modes, rows, times_of(count), work, groups, opening, how, moves, seed, best, halt)
    return None if found < 0 else (int(found), best)


class Annealer:
    """Simulated annealing of the orders of `units`: passes, blocks or jobs; of `Operations` their modes as well.

    From given orders, `run` returns the best schedule met and its value. `search` returns the value with the orders and
    modes of that schedule, and makes no schedule of them. Both return None if the given orders deadlock. The arrays of
    the compiled search (`shop`, `groups`, and `modes`, None where modes are fixed) are made once, for any number of
    runs; `mean` is the mean duration of a unit.
    """

    def __init__(self, units: Movable | Operations) -> None:
        self.units = units
        feeds: list[list[tuple[int, int]]] = [[] for _ in units.needs]
        for number, needs in enumerate(asking(units.needs, SHORT)):
            for before, lag in needs:
                feeds[before].append((number, lag))
        capacity = [-1 if c is None else c for c in units.room]
        plain = (units.ticks, units.device, units.line, units.takes, units.gives, capacity)
        arrays = [int64_array(values) for values in plain]
        self.shop = Shop._make([*arrays, *_rows(units.needs), *_rows(feeds)])
        self.modes = _modes(units, self.shop) if isinstance(units, Operations) else None
        self.groups = exchangeable(units)
        self.mean = sum(units.ticks) / max(1, len(units.ticks))

    def run(
        self,
        orders: Orders,
        openings: Sequence[int],
        parameters: AnnealingRun,
        moves: int,
        seed: int,
        halt: IntArray | None = None,
    ) -> AnnealedSchedule | None:
        """Return the best schedule met in `moves` moves from `orders`, and its value; None if `orders` deadlock.

        `openings[d]` is the time at which device d may start. It and the value are in the time of the units: ticks for
        passes, steps for jobs. Setting `halt[0]` from another thread ends the run. `seed` is that of the random
        numbers. With `parameters.leaving` the result may be worse than `orders`.
        """
        found = self.search(orders, openings, parameters, moves, seed, halt)
        return None if found is None else AnnealedSchedule(found[0], self._schedule(found[1]))

    def search(
        self,
        orders: Orders,
        openings: Sequence[int],
        parameters: AnnealingRun,
        moves: int,
        seed: int,
        halt: IntArray | None = None,
    ) -> tuple[int, Best] | None:
        """Return the least value met in `moves` moves from the given orders, and its orders and modes.

        None if the given orders deadlock. Setting `halt[0]` from another thread ends the run at once. `openings[d]` is
        the time at which device d may start; the value is the longest time of a device from there to its last end. Both
        are in the time of the units: ticks for passes, steps for jobs. With `parameters.leaving` the value may be
        larger than that of the given orders. `seed` is that of the random numbers; the same arguments give the same
        result unless `halt[0]` is set.
        """
        shop, modes, rows = self.arrays(orders)
        opening, how = int64_array(openings), parameters.in_ticks(self.mean)
        return annealed(shop, modes, rows, self.groups, opening, how, moves, seed, halt)

    def arrays(self, orders: Orders) -> tuple[Shop, Modes | None, Rows]:
        """Return the arrays of one run from these orders; `Modes` is None where modes are fixed.

        With open modes `Shop` and `Modes` are copies, set to the schedule's modes, since costs and arcs follow the
        current modes; with fixed ones `Shop` is `shop` itself, which a run does not change.
        """
        rows = self.rows(orders)
        if self.modes is None or not isinstance(self.units, Operations):
            return self.shop, None, rows
        shop, modes = Shop(*(column.copy() for column in self.shop)), Modes(*(one.copy() for one in self.modes))
        for b in np.flatnonzero(modes.of[:, ROLE] == BACKWARD).tolist():
            renew(shop, modes, b)
        for b, f in enumerate(self.units.mate):
            if f != NONE:
                attach(shop, modes, rows, f, b)
        return shop, modes, rows

    def _schedule(self, best: Best) -> Schedule | None:
        if isinstance(self.units, Operations):
            return self.units.schedule(orders_of(best), best.fused.tolist(), best.mate.tolist())
        return self.units.schedule(orders_of(best))

    def rows(self, orders: Orders) -> Rows:
        """Return the orders as arrays of 64-bit integers, with ranks of 0.

        The orders are a row for each device, padded with -1 to the most units that any device may have; `count` has
        their lengths. By unit, `place` is that in the order of its device, -1 for none.
        """
        count = int64_array([len(order) for order in orders])
        most = np.bincount(self.shop.device, minlength=1).max()
        packed = np.full((len(orders), max(1, most)), -1, np.int64)
        place = np.full(len(self.units.needs), -1, np.int64)
        for device, order in enumerate(orders):
            packed[device, : len(order)] = order
            place[order] = np.arange(len(order))
        return Rows(packed, count, place, np.zeros_like(place))


def orders_of(best: Best) -> Orders:
    """Return the units of each device in order, as lists of unit numbers."""
    return [row[:length].tolist() for row, length in zip(best.order, best.count, strict=True)]


def _rows(lists: list[list[tuple[UnitId, int]]]) -> tuple[IntArray, IntArray, IntArray]:
    """Return for each unit its list of (unit, lag) pairs as compressed rows: starts of rows, units, lags.

    The row of unit n goes from start n to start n + 1 (exclusive).
    """
    at = np.cumsum([0] + [len(one) for one in asking(lists, SHORT)])
    flat = int64_array([pair for one in asking(lists, SHORT) for pair in one]).reshape(-1, 2)
    return at.astype(np.int64), np.ascontiguousarray(flat[:, 0]), np.ascontiguousarray(flat[:, 1])


def _modes(units: Operations, shop: Shop) -> Modes:
    """Return the arrays of modes: costs of each operation by mode, durations of blocks, and an empty log of edits.

    Backwards are fused as in the schedule; blocks are not yet joined.
    """
    problem, view, operations, lines = units.problem, units.problem.pipeline, units.operations, units.lines
    role = [{F: FORWARD, B: BACKWARD, W: WEIGHT}[x.role] for x in operations]
    free = [x.role is B and view.splits and not fused_is_dominated(problem, x.stage) for x in operations]
    other = list(units.weight)
    for b, w in enumerate(units.weight):
        if w != NONE:
            other[w] = b
    block, gains = np.full((len(lines), len(lines)), NONE, np.int64), np.zeros((len(lines), len(lines)), np.int64)
    for one, (kind, stage) in enumerate(lines):
        for another, (role_of, mate) in enumerate(lines):
            ticks = view.blocks.get((stage, mate)) if (kind, role_of) == (F, B) else None
            if ticks is not None:
                block[one, another], gains[one, another] = ticks, view.saved_by_block(stage, mate) > 0
    numbers = (role, other, units.fused, free, units.ticks, units.takes, units.gives)
    whole = (units.whole_ticks, units.whole_takes, units.whole_gives)
    of = np.ascontiguousarray(int64_array((*numbers, *whole)).T)
    log, touched = np.zeros((MOST_EDITS + 2, 4), np.int64), np.zeros(4, np.int64)
    return Modes(of, np.full(len(of), NONE, np.int64), block, gains, _twins(shop), log, touched)


def _twins(shop: Shop) -> IntArray:
    """Return two rows: the index in `shop.feeds` of each arc of `waits`, and that in `waits` of each of `feeds`."""
    arcs = range(len(shop.waits_for))
    waiting = np.repeat(np.arange(len(shop.device)), np.diff(shop.waits_at))
    feeding = np.repeat(np.arange(len(shop.device)), np.diff(shop.feeds_at))
    fed = {(feeding[a], shop.feeds_to[a]): a for a in arcs}
    waits_twin = int64_array([fed[shop.waits_for[a], waiting[a]] for a in arcs])
    feeds_twin = np.zeros(len(arcs), np.int64)
    feeds_twin[waits_twin] = int64_array(arcs)
    return np.stack((waits_twin, feeds_twin))
