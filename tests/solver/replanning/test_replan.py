"""Ordering anew what remains of an iteration: every order of tiny ones, the validator, the state file, the command."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from random import Random
from typing import Any

import jsonschema
import pytest

from commands.main import main
from formulations.jobs.jobs_that_remain import jobs_that_remain
from formulations.variables.operations import Operations
from formulations.window.window_jobs import WindowJobs
from pipesched.errors import BadInput
from pipesched.files.problem_file import problem_from
from pipesched.files.state_file import json_schema, state_from
from pipesched.problem.passes import BW, NORM, RECOMPUTATIONS, STEP, B, F, Pass, Task
from pipesched.problem.problem import Objective, Problem
from pipesched.problem.rescale import in_ticks_of
from pipesched.problem.stage import TaskSpec
from pipesched.problem.state import Ran, State
from pipesched.results.replanned import Replanned
from pipesched.results.solution import Status
from pipesched.simulation.simulator import simulate
from pipesched.validation.state_rules import validate_from_state
from pipesched.validation.validator import validate
from solver.replanning.first_orders import first_orders
from solver.replanning.replan import replan
from solver.tasks.placing import placed_at
from tests.support.columns import with_tasks
from tests.support.command_forks import command
from tests.support.counted import counted
from tests.support.daily import daily
from tests.support.makers import problem
from tests.support.open_ends import open_ends
from tests.support.states import (
    least_end,
    tiny_state,
    tiny_state_in_span,
    tiny_state_of_gathers,
    tiny_state_of_memory,
    tiny_state_of_norms,
    tiny_state_of_tasks,
)
from tests.support.task_brute_force import TooManyOrdersError, optimum

SURE = counted(5)
STATES = Path(__file__).resolve().parents[3] / "examples" / "states"


@pytest.mark.parametrize(
    ("first", "tiny"),
    [
        *((n, tiny_state) for n in daily(range(0, 120, 20), 6)),
        *((n, tiny_state_of_tasks) for n in daily(range(0, 60, 20), 3)),
        *((n, tiny_state_of_memory) for n in daily(range(0, 60, 20), 3)),
        (0, tiny_state_of_gathers),
        (0, tiny_state_in_span),
    ],
)
def test_against_every_order_of_what_remains(first: int, tiny: Callable[[Random], tuple[Problem, State]]) -> None:
    """Changed times and transfers, split and fused, pieces, several stages a device, several tasks a pass, parameters;
    copies and recomputations that have begun, are told, or are open; gathered parameters. Some of them on each day."""
    compared = 0
    for seed in range(first, first + 10):
        one, state = tiny(Random(seed))
        try:
            best = least_end(one, state, 20_000)
        except ValueError:
            continue
        told: list[Replanned] = []
        found = replan(one, state, SURE, told.append)
        compared += 1
        if best is None:
            assert found.status is Status.INFEASIBLE, seed
            continue
        assert (found.status, found.value) == (Status.OPTIMAL, best), seed
        for better in (*told, found):
            assert better.tasks is not None and better.lower_bound <= best <= (better.value or 0), seed
            assert validate_from_state(better.problem, better.state, better.tasks) == [], seed
    assert compared > 4


def test_what_remains_around_the_norm_of_all_gradients() -> None:
    """Against every order: before the norm, while it runs, and after it, where steps of some devices have begun."""
    seen = Counter[str]()
    for seed in range(40):
        one, state = tiny_state_of_norms(Random(seed))
        try:
            best = least_end(one, state, 20_000)
        except ValueError:
            continue
        assert best is not None
        found = replan(one, state, SURE)
        assert (found.status, found.value) == (Status.OPTIMAL, best), seed
        assert found.tasks is not None and validate_from_state(found.problem, found.state, found.tasks) == [], seed
        norms, steps = ([ran for task, ran in state.ran.items() if task.of.kind is kind] for kind in (NORM, STEP))
        if not norms:
            seen["before the norm"] += 1
        elif norms[0].end > state.now:
            seen["during the norm"] += 1
        elif not steps:
            seen["after the norm"] += 1
        else:
            seen["after a step" if len(steps) < sum(STEP in own.kinds_once for own in one.stages) else "after all"] += 1
            seen["a step under way"] += any(ran.end > state.now for ran in steps)
    assert seen.keys() >= {"before the norm", "during the norm", "after the norm", "after a step", "a step under way"}


NORMS: dict[str, Any] = {
    "times": {"forward": 1, "backward": 2},
    "parameters": {"reduce": {"time": 1}, "norm": {"time": 2}, "step": {"time": [1, 5]}},
    "objective": "iteration",
}
# Device 0 is done with its step; device 1 has just begun its own.
_PAST_THE_NORM = [
    {"name": "F0.0", "start": 0, "end": 1}, {"name": "F1.0", "start": 1, "end": 2}, {"name": "BW1.0", "start": 2, "end": 4},
    {"name": "BW0.0", "start": 4, "end": 6}, {"name": "G1.0", "start": 4, "end": 5}, {"name": "G0.0", "start": 6, "end": 7},
    {"name": "N0.0", "start": 7, "end": 9}, {"name": "S0.0", "start": 9, "end": 10}, {"name": "S1.0", "start": 9},
]  # fmt: skip


def test_a_state_file_past_the_norm_leaves_the_steps_alone() -> None:
    one = problem(2, 1, **NORMS)
    found = replan(*state_from({"now": 10, "passes": _PAST_THE_NORM}, one), SURE)
    assert (found.status, found.value) == (Status.OPTIMAL, 14)
    # Step and norm of device 1 have not begun: its stream waits for the norm that device 0 owns.
    found = replan(*state_from({"now": 7, "passes": _PAST_THE_NORM[:6]}, one), SURE)
    assert (found.status, found.value) == (Status.OPTIMAL, 7 + 2 + 5)
    assert found.tasks is not None
    late = found.tasks | {Task(Pass(STEP, 1, 0)): Ran(8, 13)}
    assert {"precedence"} <= {each.rule for each in validate_from_state(found.problem, found.state, late)}


@pytest.mark.parametrize(("without", "line"), [("N0.0", "S0.0 needs N0.0"), ("G1.0", "N0.0 needs G1.0")])
def test_a_state_in_which_the_norm_comes_out_of_turn_is_refused(without: str, line: str) -> None:
    """Reductions of every device come before the norm that one device owns."""
    passes = [own for own in _PAST_THE_NORM if own["name"] != without]
    with pytest.raises(BadInput, match=line):
        state_from({"now": 10, "passes": passes}, problem(2, 1, **NORMS))


def test_a_span_of_which_nothing_has_begun_is_that_of_the_whole() -> None:
    """Devices begin when they like from now on: to the fraction of a tick by every order, with cycles of paths."""
    seen = Counter[int]()
    for seed in (*range(16), 31, 34, 39, 58, 94):
        one = open_ends(Random(seed), ("lookups", "weights", "parameters")[seed % 3])
        with suppress(TooManyOrdersError):
            best = optimum(one, one.objective, 4, 3_000)
            found = replan(one, State(seed % 3, {}), counted(20))
            assert best is not None and found.value is not None and found.tasks is not None, seed
            assert (found.status, in_ticks_of(one, found.value, found.problem)) == (Status.OPTIMAL, best), seed
            assert validate_from_state(found.problem, found.state, found.tasks) == [], seed
            seen[best.denominator] += 1
    assert seen.keys() == {1, 2}, seen


HALF: dict[str, Any] = {
    "placement": "bidirectional", "objective": "span",
    "times": {"forward": 4, "backward": 1, "weight": [4, 4, 3, 2], "transfer": 1},
}  # fmt: skip
QUARTER: dict[str, Any] = {
    "times": {"forward": [4, 2], "backward": [0.5, 1], "weight": [4.5, 6.5], "fused": 7, "transfer": [4, 0]},
    "memory": {"activation": 3, "freed_by_backward": 1}, "objective": "span",
}  # fmt: skip


@pytest.mark.parametrize(
    ("one", "document", "value"),
    [
        (problem(2, 2, **HALF), {"now": 0, "passes": []}, 17.5),
        (problem(2, 3, **QUARTER), {"now": 2, "passes": [{"name": "F0.0", "start": 0}]}, 30.25),
    ],
)
def test_spans_of_half_a_tick(one: Problem, document: dict[str, Any], value: float) -> None:
    told: list[Replanned] = []
    found = replan(*state_from(document, one), SURE, told.append)
    assert found.value is not None and found.status is Status.OPTIMAL
    assert found.document()["value"] == found.document()["lower_bound"] == value
    assert all(better.document()["lower_bound"] <= value for better in told)  # type: ignore[operator]


def held() -> tuple[Problem, State]:
    """A device with room for two; two forwards have run, the second still does."""
    one = problem(1, 3, times={"forward": 2, "backward": 3}, memory={"capacity": 2, "activation": 1})
    return one, State(3, {Task(Pass(F, 0, 0)): Ran(0, 2), Task(Pass(F, 0, 1)): Ran(2, 9)})


def test_what_has_begun_stays_and_nothing_else_starts_before_now() -> None:
    one, state = held()
    found = replan(one, state, SURE)
    assert found.value == 9 + 3 * 3 + 2 and found.tasks is not None
    assert dict(state.ran).items() <= dict(found.tasks).items()
    assert min(times.start for p, times in found.tasks.items() if p not in state.ran) == 9


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        ({Task(Pass(F, 0, 1)): Ran(2, 8)}, "state"),
        ({Task(Pass(BW, 0, 0)): Ran(9, 10)}, "state"),
        ({Task(Pass(BW, 0, 0)): Ran(8, 11)}, "overlap"),
        ({Task(Pass(BW, 0, 2)): Ran(9, 12), Task(Pass(BW, 0, 0)): Ran(17, 20)}, "precedence"),
        (
            {Task(Pass(F, 0, 2)): Ran(9, 11), Task(Pass(BW, 0, 0)): Ran(11, 14), Task(Pass(BW, 0, 1)): Ran(14, 17)},
            "memory",
        ),
        ({Task(Pass(B, 0, 2)): Ran(30, 33)}, "complete"),
    ],
)
def test_the_validator_finds_what_is_wrong(change: dict[Task, Ran], rule: str) -> None:
    one, state = held()
    right = {**state.ran, Task(Pass(BW, 0, 0)): Ran(9, 12), Task(Pass(F, 0, 2)): Ran(12, 14),
             Task(Pass(BW, 0, 1)): Ran(14, 17), Task(Pass(BW, 0, 2)): Ran(17, 20)}  # fmt: skip
    assert validate_from_state(one, state, right) == []
    assert rule in {violation.rule for violation in validate_from_state(one, state, right | change)}


def test_a_state_that_memory_never_lets_go_on_is_infeasible() -> None:
    """Both micro-batches wait for memory on the device of their last stage."""
    one = problem(1, 2, placement=[0, 0], times={"forward": 1, "backward": 1}, memory={"capacity": 2, "activation": 1})
    state = State(2, {Task(Pass(F, 0, 0)): Ran(0, 1), Task(Pass(F, 0, 1)): Ran(1, 2)})
    assert least_end(one, state) is None
    assert replan(one, state, SURE).status is Status.INFEASIBLE


def test_a_span_counts_from_the_first_task_of_a_device() -> None:
    one = replace(problem(1, 2, times={"forward": 2, "backward": 3}), objective=Objective.SPAN)
    begun = State(9, {Task(Pass(F, 0, 0)): Ran(0, 2)})
    for state, value in ((State(9, {}), 10), (begun, 9 + 8)):
        found = replan(one, state, SURE)
        assert (found.status, found.value, found.lower_bound) == (Status.OPTIMAL, value, value)
        assert f"span {value}" in found.text()


def test_nothing_remains() -> None:
    one = problem(1, 1, times={"forward": 1, "backward": 1})
    found = replan(one, State(5, {Task(Pass(F, 0, 0)): Ran(0, 1), Task(Pass(BW, 0, 0)): Ran(2, 6)}), SURE)
    assert (found.status, found.value) == (Status.OPTIMAL, 6)


def test_a_state_file_is_read_in_ticks_that_are_fine_enough() -> None:
    one = problem(1, 2, times={"forward": 1, "backward": 1})
    document = {"now": 1.25, "passes": [{"name": "F0.0", "start": 0, "end": 0.5}, {"name": "F0.1", "start": 1}]}
    jsonschema.validate(document, json_schema())
    finer, state = state_from(document, one)
    assert finer.in_units(state.now) == 1.25
    assert [finer.in_units(state.ran[Task(Pass(F, 0, 1))].end)] == [2]


@pytest.mark.parametrize(
    ("document", "mistakes"),
    [
        ({}, ["now: missing", "passes: missing"]),
        ({"now": -1, "passes": []}, ["now: found -1"]),
        ({"now": 1, "passes": [{"name": "F0.0", "begin": 0}]}, ["passes[0].begin: unknown key"]),
        ({"now": 1, "passes": [{"name": "F0.0"}]}, ["passes[0]: found no start"]),
        ({"now": 1, "passes": [{"name": "X", "start": 0}]}, ["passes[0].name: found 'X'"]),
        ({"now": 1, "passes": [{"name": "F7.0", "start": 0}]}, ["passes[0].name: found 'F7.0'"]),
        ({"now": 1, "passes": [{"name": "F0.0", "start": 2}]}, ["passes[0].start: found 2; allowed: up to now, 1"]),
        ({"now": 9, "passes": [{"name": "F0.0", "start": 2, "end": 1}, {"name": "F0.0", "start": 3}]},
         ["passes[0].end: found 1", "passes[1].name: F0.0 appears twice"]),
        ({"now": 9, "passes": [{"name": "F0.0", "start": 2, "end": 4}, {"name": "F0.1", "start": 3, "end": 5}]},
         ["passes: F0.1 starts before F0.0 ends on device 0"]),
        ({"now": 9, "passes": [{"name": "F1.0", "start": 2, "end": 4}]},
         ["passes: F1.0 needs F0.0, which has not begun"]),
    ],
)  # fmt: skip
def test_mistakes_are_one_line_each(document: dict[str, Any], mistakes: list[str]) -> None:
    one = problem(2, 2, times={"forward": 2, "backward": 2})
    with pytest.raises(BadInput) as error:
        state_from(document, one)
    found = [line.removeprefix("state: ") for line in error.value.mistakes]
    assert len(found) == len(mistakes)
    assert all(line.startswith(start) for line, start in zip(found, mistakes, strict=True)), found


def test_what_a_state_does_not_tell_enough_of_is_refused() -> None:
    one = problem(1, 1, times={"forward": 2, "backward": 2})
    with pytest.raises(BadInput, match="found objective period; allowed with a state: makespan"):
        state_from({"now": 0, "passes": []}, replace(one, objective=Objective.PERIOD))


@pytest.mark.parametrize(
    ("names", "mistake"),
    [
        ("U0.0@0-1 F0.0@1-3 D0.0@3-3 F0.1@3-5", "F0.1 began where the parameters of its stage were not gathered"),
        ("U0.0@0-1 F0.0@1-3 D0.0@2-2", "F0.0 began where"),
        ("U0.0@0-1 U0.1@1-2", "U0.1 needs D0.0, which has not begun"),
        ("U0.0@0-1 D0.0@1-1 U0.1@1-2 D0.1@2-2 U0.2@2-3", "parameters are gathered 3 times by them; the limit is 2"),
        ("U0.0@0-1 F0.0@1-3", ""),
    ],
)
def test_what_has_begun_had_its_parameters(names: str, mistake: str) -> None:
    gather = {"time": 1, "on": "dp", "memory": 1, "keep": "free", "most": 2}
    times = {"forward": 2, "backward": 2}
    one = problem(1, 2, times=times, parameters={"gather": gather}, objective="iteration", streams=["compute", "dp"])
    one = one.with_stages(gather=[one.stages[0].gather and one.stages[0].gather._replace(most=3)])
    passes = list[dict[str, Any]]()
    for name, start, end in (text.replace("@", "-").split("-") for text in names.split()):
        passes.append({"name": name, "start": int(start), "end": int(end)})
    document = {"now": 5, "passes": passes}
    if not mistake:
        found = replan(*state_from(document, one), SURE)
        assert found.status is Status.OPTIMAL and found.value == 5 + 2 + 2 + 2
        return
    with pytest.raises(BadInput, match=mistake):
        state_from(document, one)


SAVING: dict[str, Any] = {
    "streams": ["compute", "copy"],
    "times": {"forward": 2, "backward": 3},
    "memory": {
        "capacity": 3, "activation": 2, "recompute": [{"name": "full", "time": 2, "keeps": 1}],
        "offload": {"out": 1, "in": 1, "on": "copy", "host_capacity": 2},
    },
}  # fmt: skip


def test_a_forward_that_has_begun_is_recomputed_where_the_state_says_so() -> None:
    one = problem(1, 2, **SAVING)
    begun: dict[str, Any] = {"name": "F0.0", "start": 0, "end": 2}
    values = {}
    for told in (None, "full"):
        found, state = state_from({"now": 2, "passes": [begun | ({"recompute": told} if told else {})]}, one)
        best = replan(found, state, SURE)
        assert best.tasks is not None and (best.value, best.status) == (least_end(found, state), Status.OPTIMAL)
        values[told] = [
            str(p) for p in {task.of for task in best.tasks} if p.kind in RECOMPUTATIONS and p[1:] == (0, 0)
        ]
        other = replace(state, recomputed={} if told else {(0, 0): RECOMPUTATIONS[0]})
        assert "complete" in {violation.rule for violation in validate_from_state(found, other, best.tasks)}
    assert values == {None: [], "full": ["R0.0"]}
    for name, way, allowed in (("F0.0", "some", "allowed: full"), ("BW0.0", "full", "allowed: with a forward")):
        with pytest.raises(BadInput, match=allowed):
            state_from(
                {"now": 9, "passes": [begun, {"name": name, "start": 4, "recompute": way}][name == "F0.0" :]}, one
            )


_RAN = [{"name": "F0.0", "start": 0, "end": 2}, {"name": "BW0.0", "start": 2, "end": 5}]


@pytest.mark.parametrize(
    "memory",
    [
        {"offload": {"out": 1, "in": 1}},
        {"recompute": [{"name": "full", "time": 1}]},
        {"offload": {"out": 1, "in": 1}, "recompute": [{"name": "full", "time": 1}, {"name": "some", "time": 2}]},
    ],
)
def test_what_has_been_kept_needs_no_copy_and_no_recomputation(memory: dict[str, Any]) -> None:
    one = problem(1, 2, streams=["compute", "d2h", "h2d"], times={"forward": 2, "backward": 3},
                  memory={"activation": 1, "capacity": 2} | memory)  # fmt: skip
    found = replan(*state_from({"now": 5, "passes": _RAN}, one), SURE)
    assert (found.status, found.value) == (Status.OPTIMAL, 10)


def test_how_an_activation_is_recomputed_is_inferred_where_it_can_be() -> None:
    """From the recomputation that has begun, or as the only way that there is; else the state must say it."""
    ways = [{"name": "full", "time": 1}, {"name": "some", "time": 2}]
    keys: dict[str, Any] = {"times": {"forward": 2, "backward": 3}}

    def always(count: int) -> Problem:
        memory = {"activation": 1, "capacity": 2, "recompute": ways[:count], "decide": {"recompute": "always"}}
        return problem(1, 2, memory=memory, **keys)

    begun = {"now": 2, "passes": _RAN[:1]}
    _, state = state_from(begun, always(1))
    assert state.recomputed == {(0, 0): RECOMPUTATIONS[0]}
    with pytest.raises(BadInput, match=r"found no recompute of F0\.0; allowed: full, some"):
        state_from(begun, always(2))
    again = {"name": "Rb0.0/some", "start": 2, "end": 4}
    one, state = state_from({"now": 4, "passes": [_RAN[0], again]}, always(2))
    assert state.recomputed == {(0, 0): RECOMPUTATIONS[1]}
    found = replan(one, state, SURE)
    assert (found.status, found.value) == (Status.OPTIMAL, 4 + 3 + 2 + 1 + 3)
    with pytest.raises(BadInput, match=r"BW0\.0 needs R0\.0/full, which has not begun"):
        state_from({"now": 5, "passes": _RAN}, always(1))


@pytest.mark.parametrize(
    ("number", "ticks"), [("39/2", "39/2"), (19.5, "39/2"), ("19500 us", "39/2"), ("0.0195 s", "39/2"), (7, "7")]
)
def test_times_of_a_state_are_written_as_those_of_a_problem(number: object, ticks: str) -> None:
    document = {"now": number, "passes": [{"name": "F0.0", "start": "1/3", "end": number}]}
    jsonschema.validate(document, json_schema())
    one, state = state_from(document, problem(1, 2, time_unit="ms", times={"forward": 2, "backward": 3}))
    assert state.now * one.tick == Fraction(ticks) == state.ran[Task(Pass(F, 0, 0))].end * one.tick
    with pytest.raises(BadInput, match="now: found '3 GiB'; allowed: a number, or a time such as 300 us"):
        state_from({"now": "3 GiB", "passes": []}, one)


def test_what_has_begun_fits_the_memory_of_devices_and_hosts() -> None:
    one = problem(1, 3, **SAVING)
    passes = [{"name": f"F0.{j}", "start": 2 * j, "recompute": "full"} for j in range(3)]
    with pytest.raises(BadInput, match="device 0 holds 4 activations by them; its capacity is 3"):
        state_from({"now": 5, "passes": passes}, one)
    copies = [{"name": f"{kind}0.{j}", "start": 3 * j + 2 * (kind == "O")} for j in range(2) for kind in "FO"]
    with pytest.raises(BadInput, match="host 0 holds 4 activations by them; its capacity is 2"):
        state_from({"now": 6, "passes": copies}, one)
    with pytest.raises(BadInput, match="can no longer be held, copied or recomputed"):
        state_from({"now": 4, "passes": [passes[0], {"name": "O0.0", "start": 2}]}, one)


def test_a_pass_of_several_tasks_is_told_task_by_task() -> None:
    """The forward's second task still runs on its stream; what has begun alone holds memory."""
    one = with_tasks(problem(1, 2, times={"forward": 5, "backward": 2}, memory={"activation": 1, "capacity": 1}),
                     {(F, 0): (TaskSpec("compute", 2, "attn"), TaskSpec("ep", 3, "moe"))})  # fmt: skip
    document: dict[str, Any] = {
        "now": 3,
        "passes": [{"name": "F0.0/attn", "start": 0, "end": 2}, {"name": "F0.0/moe", "start": 3}],
    }
    one, state = state_from(document, one)
    found = replan(one, state, SURE)
    assert (found.status, found.value) == (Status.OPTIMAL, 6 + 2 + 5 + 2)
    schedule = found.schedule()
    assert schedule is not None and validate(simulate(one, schedule)) == []
    with pytest.raises(BadInput, match=r"F0\.0/moe needs F0\.0/attn, which has not begun"):
        state_from({"now": 3, "passes": document["passes"][1:]}, one)


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    call = ["solve", str(STATES / "slow-device.yaml"), "--from-state", str(STATES / "slow-device.state.json")]
    assert main([*call, "--json", "--workers", "1", "-o", str(tmp_path)]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["status"], found["value"], found["lower_bound"]) == ("optimal", 402, 402)
    assert [sum(not one["fixed"] for one in order) for order in found["orders"]] == [17, 17, 18, 18]
    assert json.loads((tmp_path / "replanned.json").read_text())["value"] == 402
    assert (tmp_path / "replanned.png").read_bytes().startswith(b"\x89PNG")
    assert main(["validate", str(tmp_path / "schedule.json"), "--json"]) == 0
    rows = json.loads((tmp_path / "schedule.json").read_text())["orders"]
    assert rows == [[one["name"] for one in order] for order in found["orders"]]
    capsys.readouterr()
    assert main([*call, "--explain"]) == 2
    assert capsys.readouterr().err == "pipesched: found --explain with --from-state; allowed: one of them\n"
    assert main([*call[:3], str(tmp_path / "none.json")]) == 2


OUT_OF_TURN = {
    "devices": 2, "microbatches": 2, "placement": [0, 1, 0], "streams": ["compute", "comm"], "objective": "span",
    "tasks": {
        "forward": [{"name": "a", "time": [3.5, 1.0, 2.0]}, {"name": "b", "time": [3.5, 2.5, 2.5]}],
        "backward": [{"name": "x", "time": 2.5}, {"name": "y", "time": [4.5, 1.5, 0.5]}],
        "weight": [{"name": "w1", "time": 2.5, "on": "compute", "after": "x"}],
    },
    "times": {"transfer": [3, 5, 4]},
    "memory": {"activation": 2, "freed_by_backward": [0, 1, 2], "capacity": [5, 2]},
}  # fmt: skip


def test_windows_keep_no_order_of_micro_batches_where_an_iteration_is_under_way() -> None:
    """A window that asked for one, while a later micro-batch came first on a device, had a cycle in it."""
    one, state = state_from({"now": 0, "passes": []}, problem_from(OUT_OF_TURN))
    jobs = jobs_that_remain(one, state)
    for starts in first_orders(jobs):
        placed = placed_at(jobs, starts, [0] * one.devices)
        if placed is not None:
            window = WindowJobs(placed, 0, placed.value + 1, range(one.devices))
            assert not Operations(window.jobs).in_microbatch_order
            assert not window.jobs.interchangeable and not window.jobs.consecutive
    assert replan(one, state, counted(0.5)).notes == ()


@pytest.mark.skipif(os.name == "nt", reason="forks")
def test_a_model_on_which_presolve_with_symmetries_ends_the_process(tmp_path: Path) -> None:
    """CP-SAT 9.15: "Check failed: context_->VarToConstraints(var).empty()", in a process of its own for that reason."""
    document = {
        "devices": 3, "microbatches": 2,
        "times": {"forward": [1, "4/3", "2/3"], "backward": "2/3", "weight": "1/3", "fused": ["4/3", 2, 1]},
    }  # fmt: skip
    ran = {
        "F0.0": (0, 1), "F0.1": (1, 2), "F1.0": (1, "7/3"), "F1.1": ("7/3", "11/3"), "B1.0": ("11/3",),
        "F2.0": ("7/3", 3), "B2.0": (3, "11/3"), "F2.1": ("11/3",),
    }  # fmt: skip
    passes = [{"name": name, **dict(zip(("start", "end"), times, strict=False))} for name, times in ran.items()]
    (tmp_path / "problem.json").write_text(json.dumps(document))
    (tmp_path / "state.json").write_text(json.dumps({"now": 4, "passes": passes}))
    process = command(tmp_path, "solve", "problem.json", "--from-state", "state.json", "--json", "--workers", "1")
    printed, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors
    assert json.loads(printed)["value"] == pytest.approx(20 / 3)
