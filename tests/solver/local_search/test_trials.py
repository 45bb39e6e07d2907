"""Trials: every run has its turn in a round, the better half goes on, and the best become the pool."""

from __future__ import annotations

import pytest

from pipesched.schedule.schedule import Schedule
from pipesched.schedule.timeline import Timeline
from solver.construction.list_scheduling import list_schedules, sequential
from solver.construction.timing import best_times
from solver.limits import Limits
from solver.local_search import portfolio
from solver.local_search.pool import MEMBERS, length
from solver.local_search.portfolio import OrderSearch
from solver.local_search.trials import LEAST_MOVES, MOST_MOVES, RUNS, Trials
from tests.support.makers import problem as made

FIXED = made(4, 8, times={"forward": 10, "backward": 10, "weight": 9}, memory={"capacity": 4})
OPEN = made(3, 6, times={"forward": 10, "backward": 10, "weight": 9, "fused": 16}, memory={"capacity": 3})


def start(problem: object = OPEN) -> Timeline:
    return best_times(problem, sequential(problem))  # type: ignore[arg-type]


def test_the_better_half_goes_on_and_a_round_begins_when_the_one_before_has_ended() -> None:
    trials, better = Trials(start(FIXED), 1000), best_times(FIXED, next(iter(list_schedules(FIXED))))
    first = [trials.next() for _ in range(RUNS)]
    assert trials.next() is None
    assert len({id(one) for one in first}) == RUNS
    for one in first[: RUNS // 2]:
        assert one is not None
        one.became(better)
    trials.settled()
    second = [trials.next() for _ in range(RUNS // 2 - 1)]
    assert {id(one) for one in second} < {id(one) for one in first[: RUNS // 2]}
    trials.settled()
    assert trials.round == 1
    assert trials.next() is not None
    trials.settled()
    assert [trials.round, trials.over] == [2, False]
    while trials.next() is not None:
        pass
    trials.settled()
    assert trials.over
    assert [one.value for one in trials.members[: RUNS // 2]] == [length(better)] * (RUNS // 2)


def test_moves_suit_the_time_or_are_too_few() -> None:
    rounds, timeline = 12 + 6 + 3, start(FIXED)
    most = Trials.within(10**9, timeline, 10)
    assert most is not None
    assert most.moves == 10 * MOST_MOVES
    least = Trials.within(rounds * 10 * LEAST_MOVES + 5, timeline, 10)
    assert least is not None
    assert least.moves == 10 * LEAST_MOVES
    assert Trials.within(rounds * 10 * LEAST_MOVES - 1, timeline, 10) is None


@pytest.mark.parametrize(("problem", "tried"), [(OPEN, True), (FIXED, False)])
def test_they_come_first_where_modes_are_open(problem: object, tried: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[Trials] = []
    made_of = Trials.__init__

    def noted(self: Trials, timeline: Timeline, moves: int) -> None:
        begun.append(self)
        made_of(self, timeline, moves)

    monkeypatch.setattr(Trials, "__init__", noted)
    monkeypatch.setattr(portfolio, "_TRIALS", 1e6)
    best = start(problem)
    search = OrderSearch(best, [], Limits(workers=2), lambda: bool(begun) and begun[0].over)
    if not tried:
        search.done = lambda: search._number > 0
    search.run(60, lambda order: best_times(best.problem, order))
    assert bool(begun) == tried
    if tried:
        assert [one.value for one in search._pool.members] == [one.value for one in begun[0].members[:MEMBERS]]


@pytest.mark.parametrize("wanted", [True, False])
def test_trials_and_windows_can_be_left_out(wanted: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    monkeypatch.setattr(Trials, "within", lambda *_: asked.append("trials"))
    monkeypatch.setattr(portfolio.Windows, "improve", lambda *_: asked.append("windows"))
    best = start()
    search = OrderSearch(best, [], Limits(workers=1), lambda: search._number > 2, trials=wanted, windows=wanted)
    search.run(60, lambda _: None)
    assert asked == (["trials", "windows"] if wanted else [])


def test_they_begin_anew_from_the_first_start_where_nothing_better_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is offered stays the best; what is gone on from may be worse."""
    monkeypatch.setattr(portfolio, "_TRIALS", 1e6)
    monkeypatch.setattr(portfolio, "_PATIENCE", 0.0)
    best, begun, offered = start(), list[Timeline](), list[float]()
    made_of = Trials.__init__

    def noted(self: Trials, timeline: Timeline, moves: int) -> None:
        begun.append(timeline)
        made_of(self, timeline, 1 if len(begun) > 1 else moves)

    def offer(order: Schedule) -> Timeline | None:
        timeline = best_times(best.problem, order)
        offered.append(length(timeline))
        return timeline if length(timeline) == min(offered) else None

    monkeypatch.setattr(Trials, "__init__", noted)
    search = OrderSearch(best, [], Limits(workers=2), lambda: len(begun) == 2)
    search.run(60, offer)
    assert begun == [best, best]
    assert min(offered) < length(best)
    assert length(search.best) > min(offered)


def test_it_goes_on_with_other_random_numbers() -> None:
    best = start(FIXED)
    search = OrderSearch(best, [], Limits(workers=1, deterministic=10.0), lambda: False)
    search.run(1, lambda _: None)
    assert search._number == 1
    search.go_on(best, Limits(workers=2, deterministic=20.0), lambda: False)
    assert search.workers == 2
    search.run(1, lambda _: None)
    assert search._number == 1 + 2
