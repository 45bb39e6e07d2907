"""Simulation of single moves: after thousands of them times, tails, sequence and memory are those of the orders."""

from __future__ import annotations

import numpy as np
import pytest

from pipesched.problem.problem import Problem
from solver.construction.list_scheduling import sequential
from solver.local_search.annealing import Annealer
from solver.local_search.annealing_kernel import Best, Work, anneal, anneal_with_modes, begin_times
from solver.local_search.annealing_run import AnnealingRun
from solver.local_search.incremental_simulation import LENGTH, times_of
from solver.local_search.memory_levels import fill_levels
from solver.local_search.modes import ABSENT
from solver.local_search.units.operation_units import Operations
from solver.local_search.units.order_units import Units
from tests.solver.local_search.test_exchange import chains
from tests.solver.local_search.test_mode_search import middle
from tests.support.daily import daily

HEAT = AnnealingRun(hot=2.0, cold=1.0, evenness=0.1, filling=0.2, reach=6, changing=0.4)


def cases() -> list[tuple[Problem, bool]]:
    with_modes = [(middle(seed), True) for seed in range(8)]
    return [*with_modes, *((middle(seed), False) for seed in range(4)), (chains([1, 0.5, 1.5, 1]), False)]


@pytest.mark.parametrize("case", [*daily(range(8), 3), *daily(range(8, 12), 3), 12])
def test_what_moves_leave_is_what_a_whole_simulation_gives(case: int) -> None:
    problem, open_modes = cases()[case]
    schedule = sequential(problem)
    units = Operations(problem, schedule) if open_modes else Units(problem, schedule)
    annealer = Annealer(units)
    shop, modes, rows = annealer.arrays(units.orders)
    n = len(units.needs)
    times, opening = times_of(n), np.zeros(problem.devices, np.int64)
    work = Work(np.zeros(n, np.int64), np.zeros(n, np.int64), np.zeros_like(rows.order))
    joined = [np.zeros(n, np.int64)] * 2
    best = Best(rows.order.copy(), rows.count.copy(), *joined)
    before = rows.order.copy()
    run = anneal if modes is None else anneal_with_modes
    how, halt = HEAT.in_ticks(annealer.mean), np.zeros(1, np.int64)
    assert run(shop, modes, rows, times, work, annealer.groups, opening, how, 3000, case, best, halt) > 0
    assert (rows.order != before).any()

    present = np.flatnonzero(rows.place >= 0)
    length = int(times.clock[LENGTH])
    assert sorted(times.sequence[:length].tolist()) == present.tolist()
    assert rows.rank[times.sequence[:length]].tolist() == list(range(length))
    assert (rows.rank[rows.place < 0] == ABSENT).all()
    for row, count in zip(rows.order, rows.count, strict=True):
        assert (np.diff(rows.rank[row[:count]]) > 0).all()
    whole, levels = times_of(n), np.zeros_like(work.level)
    assert begin_times(shop, modes, rows, whole, opening)
    for d, count in enumerate(rows.count.tolist()):
        fill_levels(shop, rows, levels, d, 0)
        assert levels[d, :count].tolist() == work.level[d, :count].tolist()
    for kept, simulated in ((times.start, whole.start), (times.new_start, whole.start), (times.tail, whole.tail)):
        assert kept[present].tolist() == simulated[present].tolist()
