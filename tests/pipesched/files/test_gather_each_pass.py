"""Parameters gathered before every pass, and gradients reduced after every micro-batch."""

from __future__ import annotations

import json
from fractions import Fraction
from random import Random
from typing import Any

import pytest

from benchmarks.matrix.draw import problem_case
from benchmarks.matrix.exact.model import optimum
from heuristics.catalogue import HEURISTICS
from pipesched.checking.check import check_bound
from pipesched.checking.finding import Verdict
from pipesched.errors import BadInput
from pipesched.files.plan_answers.problem_document import plan_document, plan_from_document
from pipesched.files.plan_file import plan_problem_from
from pipesched.files.problem_file import problem_from
from pipesched.files.problems.document import problem_document
from pipesched.layers.ample_memory import why_no_plan_is_limited
from pipesched.problem.passes import BW, REDUCE, STEP, F, Pass, Task
from pipesched.problem.relaxed.ample_memory import why_never_limited
from pipesched.schedule.metrics import measure
from pipesched.schedule.schedule import schedule_of
from pipesched.simulation.simulator import simulate
from pipesched.validation.validator import validate
from solver.analysis.memory_levels import MemoryLevels
from solver.analysis.pareto_sweep import frontier
from solver.planning.plan import plan
from solver.solve import solve
from tests.support.counted import counted

NEVER = {"time": 3, "memory": 2, "keep": "never"}
EACH = {"time": 6, "every": "microbatch"}
DOCUMENT: dict[str, Any] = {
    "devices": 2,
    "microbatches": 2,
    "times": {"forward": 4, "backward": 8},
    "memory": {"capacity": 6},
    "parameters": {"gather": NEVER, "reduce": EACH, "step": {"time": 1}},
    "objective": "iteration",
}


def test_one_micro_batch_by_hand() -> None:
    """Gather 3, F 4 on either device; the backward's gathering hides; BW 8 and 8, reduction 6, step 1."""
    found = solve(problem_from(DOCUMENT | {"microbatches": 1}), counted(2))
    assert found.value_ticks == found.lower_bound_ticks == 3 + 4 + 4 + 8 + 8 + 6 + 1
    # Without room for two passes' parameters the gathering of the last device's backward waits for its forward.
    tight = DOCUMENT | {"microbatches": 1, "memory": {"capacity": 4}}
    found = solve(problem_from(tight), counted(2))
    assert found.value_ticks == found.lower_bound_ticks == 3 + 4 + 4 + 3 + 8 + 8 + 6 + 1


def test_a_published_order_gathers_one_pass_ahead_where_memory_has_room() -> None:
    problem = problem_from(DOCUMENT | {"memory": {"capacity": 20}})
    timeline = simulate(problem, HEURISTICS["gpipe"].order(problem))
    assert validate(timeline) == []
    first, second, third = Pass(F, 0, 0), Pass(F, 0, 1), Pass(BW, 0, 0)
    assert timeline.start(second) == 3  # while the first computes
    assert timeline.start(third) == timeline.end(first) + 0 or timeline.start(third) >= timeline.end(first)
    tight = problem_from(DOCUMENT)
    assert validate(simulate(tight, HEURISTICS["1f1b"].order(tight))) == []


def test_each_reduction_waits_for_its_own_backward_and_the_step_for_all() -> None:
    problem = problem_from(DOCUMENT)
    timeline = simulate(problem, HEURISTICS["1f1b"].order(problem))
    for stage in (0, 1):
        for j in (0, 1):
            assert timeline.start(Pass(REDUCE, stage, j)) >= timeline.end(Pass(BW, stage, j))
            assert timeline.start(Pass(STEP, stage, 0)) >= timeline.end(Pass(REDUCE, stage, j))
    assert timeline.start(Pass(REDUCE, 1, 0)) == timeline.end(Pass(BW, 1, 0))


def test_the_validator_refuses_a_reduction_before_its_backward() -> None:
    problem = problem_from(DOCUMENT | {"devices": 1, "microbatches": 1})
    orders = [[Pass(F, 0, 0), Pass(REDUCE, 0, 0), Pass(BW, 0, 0), Pass(STEP, 0, 0)]]
    timeline = simulate(problem, HEURISTICS["gpipe"].order(problem))
    early = dict(timeline.starts) | {Task(Pass(REDUCE, 0, 0)): timeline.start(Pass(F, 0, 0))}
    wrong = type(timeline)(problem, schedule_of(orders, "by hand"), early)
    assert "precedence" in {violation.rule for violation in validate(wrong)}


@pytest.mark.parametrize("seed", range(6))
def test_no_claim_is_above_the_optimum_of_an_exact_model(seed: int) -> None:
    random = Random(seed)
    own = random.sample(["never kept", "each micro-batch"], random.randint(1, 2))
    others = random.sample(["weight", "capacity", "transfer", "interleaved", "step", "tasks", "offload", "frozen"], 2)
    case = problem_case([*own, *others], seed)
    try:
        problem = problem_from(case.document)
    except BadInput:
        return
    found = solve(problem, counted(2))
    least, most = optimum(case.plain)
    if found.value_ticks is None:
        return
    assert least is not None and most is not None
    assert found.value_ticks * problem.tick >= least
    assert Fraction(found.lower_bound_ticks or 0) * problem.tick <= most
    assert problem_from(problem_document(problem)).stages == problem.stages
    assert found.timeline is not None and validate(found.timeline) == []
    if found.certificate is not None:
        assert check_bound(problem, found.certificate).verdict in (Verdict.VERIFIED, Verdict.TRUSTED)


def test_a_file_written_of_it_says_the_same() -> None:
    for changed in ({}, {"overlap_next": True}, {"parameters": {"gather": NEVER}}, {"frozen": 1}):
        problem = problem_from(DOCUMENT | changed)
        again = problem_from(problem_document(problem))
        assert (again.stages, again.objective) == (problem.stages, problem.objective)


@pytest.mark.parametrize(
    ("changed", "line"),
    [
        ({"sequence_chunks": 2}, "parameters.gather.keep: found never with sequence_chunks"),
        ({"microbatch_scale": [1, 2]}, "parameters.reduce.every: found microbatch with microbatch_scale"),
        ({"memory": {"recompute": [{"name": "a", "time": 1}]}}, "gather.keep: found never with memory.recompute"),
        ({"parameters": {"gather": NEVER | {"most": 9}}}, "found 9 with keep never; allowed: with keep free or a win"),
        ({"parameters": {"reduce": EACH | {"buckets": 2}}}, "buckets: found 2 with every microbatch; allowed: 1"),
        ({"parameters": {"reduce": EACH | {"every": "day"}}}, "allowed: iteration, microbatch"),
    ],
)
def test_what_it_does_not_go_with_is_refused_in_one_line(changed: dict[str, Any], line: str) -> None:
    with pytest.raises(BadInput) as error:
        problem_from(DOCUMENT | changed)
    assert sum(line in mistake for mistake in error.value.mistakes) == 1


def test_a_plan_gathers_before_every_pass() -> None:
    layer = {"name": "a", "count": 3, "forward": 2, "backward": 4, "gather": 1, "gathered": 1, "reduce": 2, "step": 1}
    parameters = {"gather": {"keep": "never"}, "reduce": {"every": "microbatch"}, "step": {}}
    document = {
        "devices": 2,
        "microbatches": 2,
        "layers": [layer],
        "parameters": parameters,
        "placement": "linear",
        "objective": "iteration",
        "memory": {"capacity": 3},
    }
    wanted = plan_problem_from(document)
    assert why_no_plan_is_limited(wanted) is None  # two stages of three layers may hold parameters at once
    found = plan(wanted, counted(2))
    assert found.best is not None
    problem = found.best.timeline.problem
    assert [task.name for task in problem.tasks_of(BW, 0)] == ["gather", "compute"]
    assert validate(found.best.timeline) == []
    assert why_never_limited(problem) is None
    assert plan_from_document(json.loads(json.dumps(plan_document(wanted))), "plan.json") == wanted


def test_no_schedule_takes_more_memory_than_the_last_level_of_a_frontier() -> None:
    """The gatherings of a forward and of its backward may be there at once; the search of levels then had no bound."""
    document = {
        "devices": 2,
        "microbatches": 2,
        "streams": ["compute", "comm"],
        "times": {"forward": 3, "backward": [2, 1], "transfer": {"time": 2, "on": "comm", "both": True}},
        "parameters": {"gather": {"time": [1, 2], "memory": 1, "on": "compute", "keep": "never"}},
        "objective": "iteration",
    }
    problem = problem_from(document)
    timeline = simulate(problem, HEURISTICS["1f1b"].order(problem))
    assert max(measure(timeline).peak_memory) <= MemoryLevels(problem).most()
    assert MemoryLevels(problem).most() == 2 * (1 + 1 + 1)
    assert frontier(problem, 3, counted(1)).points


@pytest.mark.parametrize("names", [("attention", "attention"), ("compute", "compute"), ("compute", "gather")])
def test_a_single_task_keeps_its_name_when_written(names: tuple[str, str]) -> None:
    """Orders of tasks in a schedule file name the tasks, so a pass of one named task may not be written as plain."""
    tasks = {key: [{"name": name, "time": 3}] for key, name in zip(("forward", "backward"), names, strict=True)}
    problem = problem_from(DOCUMENT | {"times": {}, "tasks": tasks, "streams": ["compute", "dp"]})
    again = problem_from(problem_document(problem))
    assert [stage.tasks for stage in again.stages] == [stage.tasks for stage in problem.stages]
