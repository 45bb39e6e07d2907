"""`compare` of a plan file: for each published schedule its own best plan, beside the best of all."""

from __future__ import annotations

import json
import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from commands.main import main
from commands.options.plan_compare import PlanRows
from commands.reports.plans.plan_comparison import shared_bounds
from commands.shared.catalogue import Exit
from commands.shared.parser import parser
from heuristics.catalogue import HEURISTICS, schedule_named
from pipesched.files.plan_file import plan_problem_from
from pipesched.layers.partition import Partition, Recomputed
from pipesched.layers.plan_problem import Choice
from pipesched.results.certificate import Certificate
from pipesched.results.solution import Status
from pipesched.schedule.metrics import measure
from pipesched.simulation.simulator import simulate
from pipesched.validation.validator import validate
from solver.planning.compared_schedule import ComparedSchedule
from solver.planning.plan import plan
from tests.support.counted import counted

PLAN: dict[str, Any] = {
    "name": "small",
    "devices": 2,
    "microbatches": 4,
    "time_unit": "ms",
    "layers": [
        {
            "name": "moe",
            "count": 4,
            "forward": 2,
            "backward": 2,
            "weight": 2,
            "memory": 1,
            "activation": 1,
            "recompute": [{"name": "full", "time": 2, "keeps": 0}],
        },
        {"name": "head", "forward": 1, "backward": 1, "weight": 1, "memory": 1, "activation": 1},
    ],
    "memory": {"capacity": 10, "unit": "GB"},
    "placement": "free",
}
NAMES = "1f1b,vpp,zbv,dualpipe-v,gpipe"
KEYS = {
    "schedule", "value", "lower_bound", "gap", "idle_ratio", "idle", "bubble", "peak_memory", "fits", "partition", "recompute", "placement",
    "chunks", "runtimes", "status", "reason",
}  # fmt: skip


def rows_of(document: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str], *more: str) -> list[Any]:
    source = tmp_path / "plan.yaml"
    source.write_text(json.dumps(document))
    words = ["compare", str(source), "--json", "--workers", "1", "--time-limit", "8", *more]
    assert main(words) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["name"], found["objective"]) == ("small", "makespan")
    rows: list[Any] = found["rows"]
    return rows


def test_another_name_of_a_schedule_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = tmp_path / "plan.yaml"
    source.write_text(json.dumps(PLAN))
    words = ["compare", str(source), "--no-optimal", "--schedules", "vpp,1F1B", "--workers", "1", "--time-limit", "0.3"]
    assert main(words) == 0
    answer = capsys.readouterr()
    assert "note: vpp is another name of interleaved-1f1b, by which it is shown\n" in answer.err
    assert "1F1B is another" not in answer.err
    assert "│ interleaved-1f1b " in answer.out


def test_a_bound_that_is_the_time_of_another_schedule_is_explained() -> None:
    """The search for 1f1b may end once none of its plans can be better than the best one known."""
    one, other = (
        plan(plan_problem_from(PLAN | {"placement": "linear", "schedule": "1f1b", "microbatches": number}), counted(1))
        for number in (4, 6)
    )
    assert one.value is not None and other.value is not None and one.value < other.value
    rows = [ComparedSchedule("1f1b", one), ComparedSchedule("gpipe", other)]
    assert shared_bounds(rows) == []
    bound = Certificate("", int(one.value / other.problem.tick), "")
    open_ = replace(other, status=Status.FEASIBLE, certificate=bound)
    assert shared_bounds([rows[0], replace(rows[1], plan=open_)]) == [
        "gpipe: searched until it was proved that no plan of it is better than that of 1f1b, which is why the bound is "
        "its time"
    ]


@pytest.mark.usefixtures("work_is_counted")
def test_every_schedule_has_a_plan_of_its_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = rows_of(PLAN, tmp_path, capsys, "--schedules", NAMES)
    assert rows[0]["value"] == next(row["value"] for row in rows if row["schedule"] == "free")
    assert {row["schedule"] for row in rows} == {
        "free", "1f1b", "interleaved-1f1b", "zbv", "dualpipe-v", "gpipe",
    }  # fmt: skip
    assert all(row.keys() >= KEYS for row in rows)
    fitting = [row for row in rows if row["fits"]]
    assert rows[: len(fitting)] == fitting
    assert [row["value"] for row in fitting] == sorted(row["value"] for row in fitting)
    model = plan_problem_from(PLAN)
    for row in fitting:
        assert row["lower_bound"] <= row["value"] and max(row["peak_memory"]) <= 10
        if row["schedule"] == "free":
            continue
        choice = Choice(row["placement"], row["chunks"])
        again = tuple(tuple(Recomputed("moe", *way) for way in stage.items()) for stage in row["recompute"])
        problem = model.problem(choice, Partition(tuple(row["partition"]), again))
        timeline = simulate(problem, schedule_named(row["order"]).order(problem))
        metrics = measure(timeline)
        assert validate(timeline) == []
        assert row["value"] == float(metrics.makespan_ticks * problem.tick)
        assert row["idle_ratio"] == metrics.idle_ratio and row["peak_memory"] == metrics.peak_memory
    placed = {row["schedule"]: row["placement"] for row in rows}
    assert placed["1f1b"] == "linear" and placed["zbv"] == placed["dualpipe-v"] == "v-shape"
    runtimes = {row["schedule"]: row["runtimes"] for row in rows}
    assert "torch" in runtimes["1f1b"] and "megatron" not in runtimes["gpipe"] and "megatron" not in runtimes["zbv"]


@pytest.mark.usefixtures("work_is_counted")
def test_what_does_not_fit_comes_last_with_the_memory_it_needs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """GPipe holds four micro-batches, and nothing may be recomputed."""
    tight = PLAN | {"memory": {"capacity": 13, "unit": "GB"}, "decide": {"recompute": "never"}}
    rows = rows_of(tight, tmp_path, capsys, "--schedules", "gpipe,1f1b")
    assert [row["schedule"] for row in rows] == ["free", "1f1b", "gpipe"]
    last = rows[-1]
    assert last["fits"] is False and last["status"] == "infeasible" and max(last["peak_memory"]) > 13
    assert last["runtimes"] == [] and last["value"] is not None
    main(["compare", str(tmp_path / "plan.yaml"), "--schedules", "gpipe,1f1b", "--time-limit", "4"])
    table = capsys.readouterr().out
    assert table.startswith("best found: ") and "the best published schedule that fits, 1f1b, takes " in table
    assert "too much on" in table and table.index("1f1b") < table.index("gpipe")
    assert table.count("exchange of gradients among replicas and the optimizer's step come on top") == 1


@pytest.mark.usefixtures("work_is_counted")
def test_a_schedule_of_another_placement_than_the_files_is_placed_by_itself(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = rows_of(PLAN | {"placement": "linear"}, tmp_path, capsys, "--schedules", "1f1b,zbv,dualpipe")
    placed = {row["schedule"]: row["placement"] for row in rows}
    assert placed["zbv"] == "v-shape" and placed["dualpipe"] == "bidirectional"
    free = next(row for row in rows if row["schedule"] == "free")
    assert all(row["value"] is None or not row["fits"] or free["value"] <= row["value"] for row in rows)


def test_all_schedules_are_the_default_and_those_that_do_not_apply_say_why(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = rows_of(PLAN, tmp_path, capsys, "--no-optimal", "--time-limit", "0.3")
    assert {row["schedule"] for row in rows} == set(HEURISTICS.names())
    out = {row["schedule"]: row["reason"] for row in rows if row["status"] == "not applicable"}
    assert "unequal micro-batches" in out["1f1b-small-ends"] and "offload" in out["pipeoffload-full"]
    assert "1f1b" not in out


_NEITHER = {"memory": {"capacity": 1, "unit": "GB"}, "decide": {"recompute": "never"}, "placement": "linear"}


@pytest.mark.parametrize(
    ("rows", "code"),
    [
        ([ComparedSchedule("zbv", applies=False)], Exit.NO),
        ([ComparedSchedule("zbv", applies=False), ComparedSchedule("1f1b")], Exit.NOT_FOUND),
        ([None], Exit.NO),
        ([None, ComparedSchedule("zbv", applies=False)], Exit.NO),
        ([None, ComparedSchedule("gpipe")], Exit.NOT_FOUND),
    ],
)
def test_no_is_the_answer_only_where_every_schedule_is_decided(
    rows: list[ComparedSchedule | None], code: Exit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """None stands for a schedule of which it is proved that no plan fits."""
    problem = plan_problem_from(PLAN | _NEITHER | {"schedule": "1f1b"})
    proved = plan(problem, counted(1))
    assert proved.status is Status.INFEASIBLE
    every = [ComparedSchedule("1f1b", proved) if row is None else row for row in rows]
    monkeypatch.setattr("commands.compare.plan_rows", lambda *_: PlanRows(problem, every, {}, False))
    (tmp_path / "plan.yaml").write_text(json.dumps(PLAN))
    assert main(["compare", str(tmp_path / "plan.yaml")]) == code


def test_where_no_plan_is_found_it_says_what_is_lacking() -> None:
    """Three layers on device 0, of 1 GB each, with two micro-batches in flight; nothing proves that none fits."""
    layers = [PLAN["layers"][0] | {"count": 6}, PLAN["layers"][1]]
    tight = {"memory": {"capacity": 4.5, "unit": "GB"}, "decide": {"recompute": "never"}, "placement": "linear"}
    found = plan(plan_problem_from(PLAN | tight | {"layers": layers, "schedule": "1f1b"}), counted(0))
    assert found.status is Status.UNKNOWN
    assert found.reason == (
        "of some plans tried without regard to memory linear with the order of 1f1b lacks least: device 0 needs 4.5 GB "
        "more than 4.5"
    )


@pytest.mark.usefixtures("work_is_counted")
def test_the_table_says_how_far_each_is_from_the_best_which_runtimes_run_it_and_what_to_type_next(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also on a terminal of 80 columns; the command printed can be typed as it stands, by the program of the caller."""
    longer = PLAN | {"placement": "linear", "layers": [PLAN["layers"][0] | {"count": 6}, PLAN["layers"][1]]}
    asked = ("--schedules", "1f1b,gpipe", "--time-limit", "1")
    rows = rows_of(longer, tmp_path, capsys, *asked)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("PIPESCHED_PROGRAM", "python3 go.py")
    source = str(tmp_path / "plan.yaml")
    assert main(["compare", source, "--workers", "1", *asked]) == 0
    said = capsys.readouterr().out
    over = {row["schedule"]: 100 * (row["value"] / rows[0]["value"] - 1) for row in rows if row["fits"]}
    assert over["1f1b"] > 0
    line = next(line for line in said.splitlines() if line.startswith("│ 1f1b "))
    assert f" {over['1f1b']:.2f} % " in line and "colossalai" in line
    typed = next(line for line in said.splitlines() if line.startswith("next: ")).removeprefix("next: python3 go.py ")
    words = shlex.split(typed)
    assert words[:2] == ["plan", source] and parser(words).parse_args(words).target in rows[0]["runtimes"]


@pytest.mark.usefixtures("work_is_counted")
def test_placements_that_the_file_does_not_allow_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`plan`, which the last line recommends, has no plan of these."""
    (tmp_path / "plan.yaml").write_text(json.dumps(PLAN | {"placement": "linear"}))
    for name, expected in (("zbv", True), ("1f1b", False)):
        words = ["compare", str(tmp_path / "plan.yaml"), "--workers", "1", "--schedules", name, "--time-limit", "1"]
        assert main([*words, "--no-optimal"]) == 0
        said = capsys.readouterr().out
        assert ("not of the file's placements (linear): v-shape; `pipesched plan` searches" in said) is expected


def test_that_no_plan_fits_is_a_no(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "plan.yaml").write_text(json.dumps(PLAN | {"memory": {"capacity": 1, "unit": "GB"}}))
    assert main(["compare", str(tmp_path / "plan.yaml"), "--schedules", "1f1b", "--time-limit", "8"]) == 1
    assert "no partition fits the memory" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("more", "asked", "said"),
    [
        ({}, "iteration", "found iteration without parameters; allowed: makespan or span"),
        (
            {"objective": "iteration", "parameters": {"step": {"time": 1}}},
            "makespan",
            "found makespan with parameters; allowed: iteration",
        ),
        (
            {"objective": "iteration", "overlap_next": True, "parameters": {"step": {"time": 1}}},
            "span",
            "found span with parameters; allowed: iteration",
        ),
    ],
)
def test_an_objective_that_the_file_cannot_have_is_refused(
    more: dict[str, Any], asked: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "plan.yaml").write_text(json.dumps(PLAN | more))
    assert main(["compare", str(tmp_path / "plan.yaml"), "--objective", asked]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.endswith(f"plan.yaml: objective: {said}")


@pytest.mark.usefixtures("work_is_counted")
def test_the_objective_iteration_is_the_files_own_where_the_next_one_overlaps(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The file of a plan with `overlap_next` is compared by the span, whether the iteration is asked for or not."""
    overlapping = {"objective": "iteration", "overlap_next": True, "parameters": {"step": {"time": 1}}}
    (tmp_path / "plan.yaml").write_text(json.dumps(PLAN | overlapping))
    words = ["compare", str(tmp_path / "plan.yaml"), "--schedules", "1f1b", "--no-optimal", "--workers", "1", "--json"]
    found = []
    for asked in ([], ["--objective", "iteration"]):
        assert main([*words, *asked]) == 0
        document = json.loads(capsys.readouterr().out)
        found.append((document["objective"], document["rows"][0]["value"]))
    assert found[0] == found[1]
    assert found[0][0] == "span"
