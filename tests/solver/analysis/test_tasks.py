"""Analyses of passes of several tasks: their questions go to the engine for tasks."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from threading import Event
from typing import Any

from pipesched.files.problem_file import problem_from, read_problem
from pipesched.problem.passes import BW, F
from pipesched.problem.problem import Problem
from pipesched.results.analysis.bottleneck import Cause, bottleneck_sentences
from pipesched.results.certificate import Certificate
from pipesched.results.evidence import OnStream
from pipesched.results.solution import Solution
from pipesched.schedule.metrics import measure
from pipesched.simulation.simulator import simulate
from pipesched.validation.validator import validate
from solver.analysis.bottleneck import bottleneck
from solver.analysis.min_memory import least_memory
from solver.analysis.perturbations import changes
from solver.analysis.time_budget import Budget, with_list_schedule
from solver.engine.engine import ENGINE
from solver.limits import Limits
from solver.solve import solve
from tests.support.counted import counted
from tests.support.makers import schedule

LIMITS = counted(2.0)


def hidden_file() -> dict[str, Any]:
    """Two micro-batches whose communication takes as long as their computation: each hides the other's."""
    tasks = {
        "forward": [
            {"name": "attn", "time": 2},
            {"name": "dispatch", "on": "comm", "time": 2},
            {"name": "mlp", "time": 2},
        ],
        "backward": [
            {"name": "mlp", "time": 2},
            {"name": "combine", "on": "comm", "time": 2},
            {"name": "attn", "time": 2},
        ],
    }
    streams = ["compute", "comm"]
    return {"devices": 1, "microbatches": 2, "streams": streams, "tasks": tasks}


def hidden(capacity: int = 2) -> Problem:
    """The same with room for so many activations."""
    return problem_from(hidden_file() | {"memory": {"capacity": capacity}})


def test_bounds_of_questions_hold_for_tasks_in_each_others_gaps() -> None:
    one = hidden()
    found = Budget(LIMITS, 1, Event()).ask(one)
    assert found.timeline is not None and validate(found.timeline) == []
    in_turn = measure(simulate(one, schedule("F0.0 BW0.0 F0.1 BW0.1"))).makespan_ticks
    # Taken for one task on one stream, a pass would be worth 12 ticks, and no schedule below 24 be thought possible.
    assert one.in_units(in_turn) == 24 and one.in_units(found.lower_bound_ticks) <= found.value < 24  # type: ignore[operator]


def test_a_question_that_is_cut_short_is_answered_by_a_list_schedule_with_its_gatherings() -> None:
    """List schedules of passes alone gather nothing: shorter than any schedule, and a defect where one is offered."""
    document = {
        "devices": 2, "microbatches": 2, "placement": "interleaved", "chunks": 2, "objective": "iteration",
        "times": {"forward": [4, 4, 1, 4], "backward": 2},
        "parameters": {"gather": {"time": [2, 1, 2, 1], "memory": 1, "on": "compute"}},
    }  # fmt: skip
    one = problem_from(document)
    found = _answered_by_a_list(one)
    assert found.value_ticks is not None and found.value_ticks <= 44 / one.tick


def test_a_question_that_is_cut_short_has_a_list_schedule_of_unequal_micro_batches() -> None:
    tasks = {
        "forward": [{"name": "attn", "time": 3}],
        "backward": [{"name": "dispatch", "on": "comm", "time": 1}, {"name": "attn", "time": 3}],
    }
    document = {"devices": 2, "streams": ["compute", "comm"], "tasks": tasks, "microbatch_scale": [1, 1.5, 0.5]}
    one = problem_from(document | {"microbatches": 3})
    in_turn = 2 * 3 * (3 + 1 + 3)  # both stages, three micro-batches of mean 1
    found = _answered_by_a_list(one)
    assert found.value_ticks is not None and found.value_ticks < in_turn / one.tick


def test_a_question_that_is_cut_short_has_no_list_schedule_that_breaks_a_rule() -> None:
    """List schedules gather parameters for each pipeline, of which two alone are within the limit."""
    document = {
        "devices": 2, "microbatches": 2, "pipelines": {"count": 2}, "times": {"forward": 1, "backward": 2},
        "objective": "iteration", "parameters": {"gather": {"time": [2, 1], "memory": 1, "most": 2}},
    }  # fmt: skip
    found = _cut_short(problem_from(document))
    assert found.notes == () and (found.timeline is None or validate(found.timeline) == [])


def _answered_by_a_list(one: Problem) -> Solution:
    found = _cut_short(one)
    assert found.timeline is not None and validate(found.timeline) == []
    assert found.value_ticks is not None and found.lower_bound_ticks <= found.value_ticks
    return found


def _cut_short(one: Problem) -> Solution:
    """The answer to a question whose solve was stopped before it had a schedule."""
    stop = Event()
    stop.set()
    engine = replace(ENGINE, construction=(), subsolvers=())
    cut_short = solve(one, Limits(seconds=0, workers=1), stop=stop, engine=engine)
    return with_list_schedule(replace(cut_short, timeline=None), Limits(seconds=60, workers=1), Event())


def test_the_least_memory_of_tasks() -> None:
    best = solve(hidden(), LIMITS)
    solution, memory = least_memory(best, Fraction(1), LIMITS)
    assert solution.timeline is not None and validate(solution.timeline) == []
    assert solution.metrics is not None and solution.metrics.peak_quanta == (1,)
    _, tight = least_memory(best, Fraction(0), LIMITS)
    assert tight.level == 2 * memory.level


def test_changes_of_what_passes_are_made_of() -> None:
    one = problem_from(hidden_file() | {"devices": 2, "times": {"transfer": 1}})
    found = {change.text: change.problem for change in changes(one, 0, 0)}
    faster = found["tasks on comm 10 % faster"]
    assert [task.ticks * faster.tick for task in faster.tasks_of(F, 1)[:3]] == [2, Fraction("1.8"), 2]
    faster = found["forwards (F) 10 % faster on device 0"]
    assert [task.ticks * faster.tick for task in faster.tasks_of(F, 0)[:3]] == [Fraction("1.8"), 2, Fraction("1.8")]
    moved = found["10 % of stage 0's times and activation moved to stage 1 (device 0 to 1)"]
    assert [task.ticks * moved.tick for task in moved.tasks_of(BW, 1)[:3]] == [Fraction("2.2")] * 3
    for name, text in {
        "offload": "recomputations (R) 10 % faster on device 0",
        "kimi-k2-mini": "tasks on comm 10 % faster",
        "sequence-chunks": "10 % of stage 0's times and activation moved to stage 1 (device 0 to 1)",
        "reduce-and-step": "tasks on dp 10 % faster",
    }.items():
        one = read_problem(Path(f"examples/{name}.yaml"))
        found = {change.text: change.problem for change in changes(one, 0, 0)}
        assert found[text] != one and bottleneck_sentences(bottleneck(found[text])), name


def test_a_stream_of_which_the_strongest_bound_speaks_is_the_bottleneck() -> None:
    keys = hidden_file()
    keys["tasks"]["forward"][1]["time"] = 40
    it = bottleneck(problem_from(keys))
    on_comm = Certificate("load", 42, "", 0, OnStream(0, "comm"))
    it = replace(it, proved=on_comm, strongest=on_comm, without_memory=42, without_transfers=42, without_both=42)
    assert it.main_causes == (Cause.STREAM,) and "Stream comm of device 0 is the bottleneck." in bottleneck_sentences(
        it
    )
