"""Gathered parameters: bounds, windows, memory, published schedules, and the file."""

from __future__ import annotations

from typing import Any

import pytest

from heuristics.catalogue import HEURISTICS, schedule_named
from pipesched.checking.check import check_bound
from pipesched.checking.finding import Verdict
from pipesched.errors import BadInput
from pipesched.problem.passes import UNSHARD, Pass, Task
from pipesched.problem.problem import Problem
from pipesched.results.solution import Status
from pipesched.schedule.metrics import measure
from pipesched.schedule.schedule import Schedule, parse_slot
from pipesched.schedule.timeline import Timeline
from pipesched.simulation.idle_causes import IdleCause, idle_times
from pipesched.simulation.simulator import simulate
from pipesched.validation.validator import validate
from solver.bounds.saving.certificates import certificates
from solver.published import candidate
from solver.solve import solve
from tests.support.counted import counted
from tests.support.makers import problem

SURE = counted(20)
TIMES = {"forward": 1, "backward": 2}


def gathering(devices: int = 1, microbatches: int = 2, **keys: Any) -> Problem:
    """A problem whose parameters take 6 while they are gathered, which takes 1."""
    section = keys.pop("parameters", {"gather": {"time": 1, "memory": 6} | keys.pop("gather", {})})
    return problem(devices, microbatches, parameters=section, objective="iteration", **{"times": TIMES} | keys)


def row(order: str) -> Schedule:
    return Schedule((tuple(map(parse_slot, order.split())),))


def broken(one: Problem, order: str, sooner: int = 0) -> list[str]:
    """The rules this order breaks, one pass after the other; passes behind a gathering start so much sooner."""
    schedule, starts, now = row(order), dict[Task, int](), 0
    for slot in schedule.orders[0]:
        for task, part in one.tasks(slot[0]):
            starts[task] = max(0, now - (0 if slot[0].kind is UNSHARD else sooner))
            now += part.ticks
    return [violation.rule for violation in validate(Timeline(one, schedule, starts))]


def test_a_window_limits_how_many_stages_are_gathered_at_once() -> None:
    where = {"placement": [0, 0], "gather": {"keep": {"window": 1}}}
    one = gathering(1, 1, **where)
    assert broken(one, "U0.0 F0.0 D0.0 U1.0 F1.0 BW1.0 D1.0 U0.1 BW0.0 D0.1") == []
    # Like too much memory: a published schedule that does so does not fit.
    assert broken(one, "U0.0 U1.0 F0.0 F1.0 BW1.0 BW0.0 D1.0 D0.0") == ["memory"]
    values = [solve(gathering(1, 1, **where | {"gather": {"keep": {"window": n}}}), SURE).value for n in (1, 2)]
    assert values == [9, 7]
    # A gathering behind a release in the order waits for it, whatever the stream's order says.
    schedule = HEURISTICS["gpipe"].order(gathering(1, 1, gather={"keep": {"window": 1}}))
    assert validate(simulate(one, row("U0.0 F0.0 D0.0 U1.0 F1.0 BW1.0 D1.0 U0.1 BW0.0 D0.1"))) == []
    assert [p.kind for p in schedule.passes()].count(UNSHARD) == 1


def test_gathered_parameters_are_held_until_they_are_dropped() -> None:
    one = gathering(memory={"capacity": 8, "activation": 1})
    timeline = simulate(one, row("U0.0 F0.0 F0.1 D0.0 U0.1 BW0.0 BW0.1 D0.1"))
    assert measure(timeline).peak_quanta == (8,)
    tight = gathering(memory={"capacity": 7, "activation": 1})
    assert solve(tight, SURE).value == 7  # one micro-batch after the other
    assert solve(gathering(memory={"capacity": 6, "activation": 1}), SURE).status is Status.INFEASIBLE


def test_idle_time_that_waits_for_a_gathering_is_the_collectives() -> None:
    one = gathering()
    again = simulate(one, row("U0.0 F0.0 F0.1 D0.0 U0.1 BW0.0 BW0.1 D0.1"))
    assert [dict(idle) for idle in idle_times(again).devices] == [{IdleCause.COLLECTIVE: 2}]
    # Device 1 has gathered by the time that its first forward could start, and reduces behind its last pass.
    two = gathering(2, 1, parameters={"gather": {"time": 1}, "reduce": {"time": 3}})
    timeline = simulate(two, HEURISTICS["1f1b"].order(two))
    first, second = (dict(idle) for idle in idle_times(timeline).devices)
    assert first == {IdleCause.COLLECTIVE: 4, IdleCause.OTHER_DEVICES: 3}
    assert second == {IdleCause.WARM_UP: 2, IdleCause.COLLECTIVE: 3, IdleCause.COOL_DOWN: 2}


def test_too_few_gatherings_are_proved_to_be_too_few() -> None:
    keys = {"placement": "interleaved", "chunks": 2, "memory": {"capacity": 8}}
    assert solve(gathering(1, 2, gather={"most": 3}, **keys), SURE).status is Status.INFEASIBLE
    assert solve(gathering(1, 2, gather={"most": 6}, **keys), SURE).status is Status.OPTIMAL


def test_bounds_of_a_problem_that_no_memory_suffices_for_are_checked_too() -> None:
    one = gathering(2, 2, memory={"capacity": 5, "activation": 1})
    assert all(check_bound(one, bound).verdict is Verdict.VERIFIED for bound in certificates(one, one.objective))


@pytest.mark.parametrize(
    ("name", "gathers", "steps"),
    [("interleaved-1f1b:4", 18, 34), ("interleaved-1f1b", 32, 34), ("looped-bfs:4", 10, 36)],
)
def test_published_orders_gather_as_memory_lets(name: str, gathers: int, steps: int) -> None:
    one = game()
    timeline = simulate(one, schedule_named(name).order(one))
    assert validate(timeline) == [] and measure(timeline).makespan_ticks == steps
    assert sum(p.kind is UNSHARD for p in timeline.schedule.passes()) == gathers


def game(**keys: Any) -> Problem:
    """Two devices with two stages each, of which both are gathered at once beside two activations."""
    section = {"gather": {"memory": 6} | keys}
    memory, times = {"capacity": 14, "activation": 1}, {"forward": 1, "backward": 1}
    where = {"placement": "interleaved", "chunks": 2, "objective": "iteration"}
    return problem(2, 8, times=times, memory=memory, parameters=section, **where)


def test_pieces_gather_what_they_share() -> None:
    one = gathering(2, 2, sequence_chunks=2, memory={"capacity": 9})
    found = solve(one, SURE)
    assert found.timeline is not None and validate(found.timeline) == []
    assert {p.stage for p in found.timeline.schedule.passes() if p.kind is UNSHARD} == {0, 2}
    assert found.timeline.start(Pass(UNSHARD, 0, 0)) == 0 < found.timeline.start(parse_slot("F0.0")[0])


@pytest.mark.parametrize(
    ("gather", "mistake"),
    [
        ({"most": 1}, "parameters.gather.most: found 1; allowed: at least 2"),
        ({"most": 4, "keep": "always"}, "parameters.gather.most: found 4 with keep always"),
        ({"keep": "sometimes"}, "parameters.gather.keep: found 'sometimes'"),
        (
            {"keep": {"window": 0}},
            "parameters.gather.keep: found keys window; allowed: free, always, never, or {window: N}",
        ),
        ({"memory": [1, 2, 3]}, "parameters.gather.memory: found 3 values"),
        ({"time": -1}, "parameters.gather.time: found -1"),
    ],
)
def test_mistakes_are_one_line_each(gather: dict[str, Any], mistake: str) -> None:
    with pytest.raises(BadInput) as error:
        gathering(2, 2, gather=gather)
    assert len(error.value.mistakes) == 1 and mistake in error.value.mistakes[0]


def test_too_few_gatherings_for_a_window_leave_a_published_schedule_out() -> None:
    """It was called a defect of this tool: gathered as seldom as it may, it holds more stages than the window."""
    gather = {"time": 1, "memory": 1, "keep": {"window": 1}, "most": 4}
    one = problem(
        2, 2, placement="bidirectional", times={"forward": 1, "backward": 2}, objective="iteration",
        parameters={"gather": gather},
    )  # fmt: skip
    found = [candidate(one, heuristic) for heuristic in HEURISTICS]
    assert not [each.reason for each in found if each.defect]
    assert any("window" in each.reason for each in found)
