"""The pool of a local search: who goes on from what, who leaves, who is replaced; and runs that leave."""

from __future__ import annotations

from pipesched.schedule.timeline import Timeline
from solver.construction.list_scheduling import list_schedules, sequential
from solver.construction.timing import best_times
from solver.local_search.annealing import Annealer
from solver.local_search.annealing_run import AnnealingRun
from solver.local_search.pool import Member, length
from solver.local_search.units.order_units import Units
from tests.support.makers import problem as made

PROBLEM = made(4, 8, times={"forward": 10, "backward": 10, "weight": 9}, memory={"capacity": 4})


def timelines() -> tuple[Timeline, Timeline]:
    """A good one and a bad one."""
    return best_times(PROBLEM, next(iter(list_schedules(PROBLEM)))), best_times(PROBLEM, sequential(PROBLEM))


def test_a_member_gets_better_or_is_stuck_and_then_becomes_whatever_a_run_came_to() -> None:
    good, bad = timelines()
    one = Member(bad, length(bad))
    one.became(None)
    one.became(bad)
    assert (one.timeline, one.stale, one.stuck) == (bad, 2, False)
    one.became(good)
    assert (one.timeline, one.value, one.stale) == (good, length(good), 0)
    for _ in range(3):
        one.became(bad)
    assert one.timeline is good
    assert one.stuck
    one.became(bad)
    assert (one.timeline, one.value, one.stuck) == (bad, length(bad), False)


def test_a_run_that_leaves_comes_to_another_schedule_although_it_is_worse() -> None:
    """From the best that a long run finds nothing better is met, so what it began with is what is returned else."""
    units = Units(PROBLEM, timelines()[0].schedule)
    annealer, openings = Annealer(units), [0] * PROBLEM.devices
    stay = AnnealingRun(hot=0.3, cold=0.05, evenness=0.1, filling=0.1)
    best = annealer.search(units.orders, openings, stay, 40_000, 0)
    assert best is not None
    orders = [row[:count].tolist() for row, count in zip(best[1].order, best[1].count, strict=True)]
    hot = AnnealingRun(hot=3.0, cold=1.0, evenness=0.1, filling=0.1)
    stays = annealer.search(orders, openings, hot, 2_000, 1)
    leaves = annealer.search(orders, openings, hot._replace(leaving=True), 2_000, 1)
    assert stays is not None
    assert leaves is not None
    assert stays[0] == best[0]
    assert leaves[0] > best[0]
    assert (leaves[1].order != best[1].order).any()
