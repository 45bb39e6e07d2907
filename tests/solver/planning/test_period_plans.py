"""Plans of least period: against all partitions, with bounds that `check` verifies, and what a period refuses."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from itertools import combinations
from random import Random

import pytest

from commands.main import main
from pipesched.checking.finding import Verdict
from pipesched.checking.plan_check import check_plan_bound, weakest
from pipesched.errors import BadInput
from pipesched.files.plan_file import plan_problem_from
from pipesched.problem.feasibility import why_infeasible
from pipesched.problem.problem import Objective
from pipesched.results.solution import Status
from solver.cyclic.solve_period import solve_period
from solver.planning.lacking import what_is_lacking
from solver.planning.plan import plan
from tests.support.counted import counted
from tests.support.daily import daily
from tests.support.plan_brute_force import partitions, tiny_plan

_LAYERS = (2, 3, 3, 3, 5, 1, 4, 2, 7)


def _plan(**more):
    layers = [{"name": f"l{n}", "forward": ticks, "backward": 0} for n, ticks in enumerate(_LAYERS)]
    return plan_problem_from({"devices": 3, "microbatches": 8, "layers": layers, "placement": "linear"} | more)


def _verdict(found, problem, bound):
    own = [replace(one, lower_bound=bound) for one in found.choices]
    return weakest(check_plan_bound(problem, bound, own))


def test_forwards_alone_take_the_longest_work_of_a_device():
    sums = lambda cuts: [sum(_LAYERS[a:b]) for a, b in zip((0, *cuts), (*cuts, len(_LAYERS)), strict=True)]  # noqa: E731
    least = min(max(sums(cuts)) for cuts in combinations(range(1, len(_LAYERS)), 2))
    problem = _plan(objective="period")
    found = plan(problem, counted(4))
    assert (
        found.value
        == found.lower_bound
        == least
        == max(sums((found.best.partition.counts[0], -found.best.partition.counts[2])))
    )
    assert _verdict(found, problem, Fraction(least)) is Verdict.VERIFIED
    assert _verdict(found, problem, Fraction(least) + Fraction(1, 3)) is not Verdict.VERIFIED
    # A whole iteration has another best partition: the way to the last stage counts.
    assert plan(_plan(microbatches=1), counted(2)).value == sum(_LAYERS)


def test_round_trips_bound_what_memory_admits():
    """One micro-batch in memory at a time: a period is its whole round trip, on each cut."""
    layers = [{"name": f"l{n}", "forward": 1 + n, "backward": 2, "activation": 1} for n in range(4)]
    document = {"devices": 2, "microbatches": 8, "layers": layers, "placement": "linear", "objective": "period"}
    problem = plan_problem_from(document | {"memory": {"capacity": 3}, "transfer": 1})
    found = plan(problem, counted(6))
    # Of three layers on the first device memory admits one, of two one, of one three.
    trips = {first: sum(range(1, 5)) + 8 + 2 for first in (2, 3)}
    assert found.best.partition.counts == (1, 3)
    assert found.value == found.lower_bound == max(Fraction(trips[2], 3), 3 + 3, sum(range(2, 5)) + 6)
    assert _verdict(found, problem, found.lower_bound) is Verdict.VERIFIED
    given = replace(problem, counts=(2, 2))
    found = plan(given, counted(4))
    assert found.value == found.lower_bound == trips[2]
    assert _verdict(found, given, found.lower_bound) is Verdict.VERIFIED
    assert _verdict(found, given, found.lower_bound + Fraction(1, 2)) is not Verdict.VERIFIED


@pytest.mark.parametrize("seed", daily(range(24), 3))
def test_against_every_partition(seed):
    problem = replace(tiny_plan(Random(seed)), objective=Objective.PERIOD)
    values, bounds = [], []
    for partition in partitions(problem, problem.choices[0]):
        own = problem.problem(problem.choices[0], partition)
        if why_infeasible(own) is None:
            solution = solve_period(own, counted(3), published=False)
            values.append(solution.value_ticks * solution.problem.tick)
            bounds.append(solution.lower_bound_ticks * solution.problem.tick)
    found = plan(problem, counted(8))
    if not values:
        assert found.status is Status.INFEASIBLE
        return
    assert min(bounds) <= found.lower_bound <= min(values)
    assert found.value == min(values)
    assert _verdict(found, problem, found.lower_bound) in (Verdict.VERIFIED, Verdict.TRUSTED)
    assert _verdict(found, problem, min(values) + Fraction(1, 7)) is not Verdict.VERIFIED


def test_two_chains_share_a_period():
    layers = [{"name": "layer", "count": 3, "forward": 1, "backward": 2}]
    document = {"devices": 2, "microbatches": 8, "layers": layers, "placement": "bidirectional", "objective": "period"}
    problem = plan_problem_from(document)
    found = plan(problem, counted(4))
    assert found.value == found.lower_bound == Fraction(9, 2)
    assert _verdict(found, problem, Fraction(9, 2)) is not Verdict.REFUSED
    assert _verdict(found, problem, Fraction(5)) is not Verdict.VERIFIED


@pytest.mark.parametrize(
    "more",
    [
        {"schedule": "1f1b"},
        {"sequence_chunks": 2},
        {"vocabulary": "shared"},
        {"encoder": {"placement": "first-stage", "forward": 1, "backward": 0}},
        {"parameters": {"step": {"time": 1}}},
    ],
)
def test_refuses_what_has_no_period(more):
    with pytest.raises(BadInput, match="objective: found period with"):
        _plan(objective="period", **more)


@pytest.mark.usefixtures("pictures_are_empty")
def test_commands(tmp_path, capsys):
    document = {
        "devices": 2,
        "microbatches": 6,
        "placement": "linear",
        "objective": "period",
        "layers": [
            {"name": "layer", "count": 5, "forward": 2, "backward": 0},
            {"name": "head", "forward": 3, "backward": 0},
        ],
    }
    path, out = tmp_path / "plan.json", tmp_path / "out"
    path.write_text(json.dumps(document))
    assert main(["plan", str(path), "-o", str(out), "--time-limit", "20", "--settings", "vllm,megatron"]) == 0
    said = capsys.readouterr().out
    assert "optimal: period 7" in said
    assert "--for megatron" not in said.split("megatron")[0]
    assert (out / "partition.vllm.sh").exists()
    for name in ("plan.json", "schedule.json"):
        assert main(["check", str(out / name)]) == 0
    said = capsys.readouterr().out
    assert "the plan is valid, with a period of 7" in said
    assert "so it is optimal" in said
    assert "the schedule is valid, with a period of 7" in said
    forged = json.loads((out / "plan.json").read_text())
    forged["plan"]["schedule"]["value"] -= 1
    (out / "forged.json").write_text(json.dumps(forged))
    assert main(["check", str(out / "forged.json")]) == 1
    assert main(["compare", str(path)]) == 2
    assert main(["plan", str(path), "--for", "megatron"]) == 2
    assert "--for megatron: found objective period" in capsys.readouterr().err


def test_where_no_plan_is_found_it_says_what_is_lacking():
    """It asked a finite schedule for its period."""
    layer = {"forward": 1, "backward": 2, "memory": 2, "activation": 1}
    document = {
        "devices": 2,
        "microbatches": 2,
        "placement": "linear",
        "objective": "period",
        "memory": {"capacity": 3},
    }
    lacking = plan_problem_from(document | {"layers": [{"name": name, **layer} for name in "abc"]})
    assert what_is_lacking(lacking) == (
        "of some plans tried without regard to memory linear with one micro-batch after the other lacks least: "
        "device 0 needs 3 GiB more than 3"
    )
