"""Why not better: the binding, and what changes are worth, against known optima and brute force."""

from __future__ import annotations

import json
from collections import Counter
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from random import Random
from threading import Event

import pytest

from commands.main import main
from commands.reports.solved.sensitivity import lines, rows
from pipesched.files.problem_file import problem_from, read_document, read_problem
from pipesched.problem.problem import Objective, Problem
from pipesched.problem.rescale import coarsest
from pipesched.results.analysis.bottleneck import Cause, bottleneck_sentences
from pipesched.results.analysis.explanation import BoundAndValue, Effect, Explanation, Perturbation, PerturbationKind
from pipesched.results.certificate import Certificate
from solver.analysis.bottleneck import bottleneck
from solver.analysis.perturbations import changes
from solver.analysis.sensitivity import explain
from solver.analysis.shared_ends import sharing_ends
from solver.solve import solve
from tests.support.columns import costs_of
from tests.support.counted import counted
from tests.support.exhaustive.optimum import least
from tests.support.makers import problem
from tests.support.nameless import nameless
from tests.support.report_text import report_text
from tests.support.task_brute_force import TooManyOrdersError, tiny_tasks
from tests.support.tiny_problem import SHAPES, tiny_problem

EXAMPLES = Path(__file__).parents[3] / "examples"
SURE = counted(60)
SMALL = tuple(shape for shape in SHAPES if shape[0].devices < 3)


def profile(activations: int, **keys: object) -> Problem:
    """The 1.5B profile of the Zero Bubble paper on 4 devices with 8 micro-batches."""
    times = {"forward": 18.522, "backward": 18.086, "weight": 9.337, "transfer": 0.601}
    memory = {"activation": 131, "freed_by_backward": 83, "capacity": 131 * activations}
    return problem(4, 8, **{"times": times, "memory": memory, "objective": "span", "time_unit": "ms"} | keys)


def explained(one: Problem) -> Explanation:
    return explain(solve(one, SURE), SURE)


def effect(it: Explanation, text: str) -> Effect:
    (found,) = [effect for effect in it.effects if effect.change.text.startswith(text)]
    return found


def test_memory_binds_and_one_more_activation_is_worth_what_it_is_known_to_be() -> None:
    # 456.585 with 4 activations and 417.289 with 5 are proved optima (tests/solver/engine/test_solve.py).
    it = explained(profile(4))
    # The way to the last device and back makes most of what is beyond the work, memory of device 0 nearly as much.
    assert it.bottleneck.main_causes == (Cause.LATENCY, Cause.MEMORY)
    assert it.bottleneck.device == 0
    assert [line.split(" is the bottleneck")[0] for line in bottleneck_sentences(it.bottleneck)[1:3]] == [
        "The pipeline's latency",
        "The memory of device 0",
    ]
    everywhere = effect(it, "one more activation on every device")
    assert everywhere.outcome.lower_bound == everywhere.outcome.value == Fraction("417.289")
    gain = Fraction("456.585") - Fraction("417.289")
    assert it.gain(everywhere) == (gain, gain)
    # On the last device an activation is given back before the next one comes: there, more memory is of no use.
    assert it.gain(effect(it, "one more activation on device 3")) == (0, 0)
    assert not it.untried


def test_with_ample_memory_and_unequal_stages_the_work_binds_and_moving_it_helps() -> None:
    one = problem(3, 24, times={"forward": [1, 3, 1], "backward": [1, 3, 1], "weight": [1, 3, 1]}, objective="span")
    it = explained(one)
    assert (it.bottleneck.main_causes, it.bottleneck.device, it.bottleneck.work) == ((Cause.LOAD,), 1, 24 * 9)
    assert bottleneck_sentences(it.bottleneck)[0].startswith("Device 1 computes 216 ")
    moves = [e for e in it.effects if e.change.kind == "move"]
    assert [e.change.text.split(" moved to ")[1] for e in moves] == [
        "stage 0 (device 1 to 0)",
        "stage 2 (device 1 to 2)",
    ]
    for move in moves:
        gain = it.gain(move)
        assert gain is not None
        assert gain[0] > 0
    faster = it.gain(effect(it, "forwards (F) 10 % faster on device 1"))
    assert faster is not None
    assert faster[0] <= Fraction(24 * 3, 10) <= faster[1] + 1


@pytest.mark.parametrize("tasks", [False, True])
def test_what_is_said_of_every_change_holds_against_brute_force(tasks: bool) -> None:
    kinds = Counter[PerturbationKind]()
    for seed in range(24 if tasks else 6):
        random = Random(seed)
        one = tiny_tasks(random) if tasks else tiny_problem(random, SMALL)
        one = one if tasks else replace(one, objective=random.choice((Objective.MAKESPAN, Objective.SPAN)))
        with suppress(TooManyOrdersError):
            best = None if one.network.one_task_each is tasks else least(one, one.objective, most_orders=2_000)
            if best is not None and (not tasks or kinds.total() < 5):
                kinds.update(holds(one, best))
    assert kinds[PerturbationKind.STREAM if tasks else PerturbationKind.MOVE] and kinds[PerturbationKind.PASSES], kinds


def holds(one: Problem, best: Fraction) -> list[PerturbationKind]:
    """The kinds of changes of which what is said is true."""
    it, kinds = explained(one), list[PerturbationKind]()
    for found in it.effects:
        changed = found.change.problem
        try:
            truth = least(changed, changed.objective, most_orders=2_000)
        except TooManyOrdersError:  # parts on all devices are passes more
            assert found.change.kind is PerturbationKind.SHARE or changed.streams[1:]
            continue
        assert (truth is None) == bool(found.reason), found.change.text
        if truth is None:
            assert it.gain(found) is None
            continue
        value, gain = truth * changed.tick, it.gain(found)
        assert found.outcome.value is not None and gain is not None
        assert found.outcome.lower_bound <= value <= found.outcome.value, found.change.text
        assert gain[0] <= best * one.tick - value <= gain[1], found.change.text
        if found.change.relaxes:
            assert value <= best * one.tick, found.change.text
            assert it.known.value is not None and found.outcome.value <= it.known.value
        kinds.append(found.change.kind)
    assert it.known.lower_bound <= it.unchanged.lower_bound <= best * one.tick
    return kinds


def test_a_heavy_end_on_all_devices_is_the_vocabulary_there() -> None:
    """The problem of examples/shared-vocabulary.yaml, whose optimum tests/solver/tasks/test_modules.py knows."""
    document = read_document(EXAMPLES / "shared-vocabulary.yaml")
    assert isinstance(document, dict)
    head = document.pop("modules")["head"]["times"]
    last = {key: [value] * 7 + [value + 8 * head[key]] for key, value in document["times"].items()}
    (change,) = sharing_ends(problem_from(document | {"times": last}))
    expected = read_problem(EXAMPLES / "shared-vocabulary.yaml")
    modules = change.problem.chain_arcs.modules
    arcs = replace(expected.chain_arcs, modules=modules)
    assert nameless(change.problem) == nameless(replace(coarsest(expected), chain_arcs=arcs))
    assert [module[1:] for module in modules] == [module[1:] for module in expected.chain_arcs.modules]
    assert change.text.startswith("what stage 7 takes beyond the others (output layer) in equal parts")
    both = problem(3, 2, times={"forward": [3, 1, 2], "backward": [1, 1, 4]}, memory={"activation": [3, 2, 2]})
    (change,) = sharing_ends(both)
    assert [module.name for module in change.problem.chain_arcs.modules] == ["embedding", "output layer"]
    ticks = [(stage.forward, stage.fused) for stage in change.problem.stages]
    assert ticks == [(3, 3)] * 3 + [(2, 0)] * 3 + [(1, 3)] * 3
    assert [stage.activation for stage in change.problem.stages[3:]] == [1, 1, 1, 0, 0, 0]
    for other in (problem(3, 2, times={"forward": [1, 2, 1], "backward": 1}), change.problem):
        assert not list(sharing_ends(other))


def test_no_row_is_weaker_than_what_is_proved_nor_tells_the_searchs_own_noise() -> None:
    one = profile(4)
    wider, move = changes(one, 0, 0)[0], next(c for c in changes(one, 0, 0) if not c.relaxes)

    def said(change: Perturbation, lower_bound: int, value: int) -> str:
        effect = Effect(change, BoundAndValue(Fraction(lower_bound), Fraction(value)))
        it = Explanation(
            bottleneck(one),
            BoundAndValue(Fraction(100), Fraction(110)),
            BoundAndValue(Fraction(95), Fraction(110)),
            (effect,),
        )
        assert it.unchanged == BoundAndValue(Fraction(max(100, lower_bound if change.relaxes else 0)), Fraction(110))
        top, row = rows(it)
        assert top[1] == str(it.unchanged.lower_bound)
        assert row[1:3] == [str(lower_bound), str(value)]
        return row[3]

    assert said(wider, 96, 110) == said(wider, 95, 105) == "inconclusive"
    assert said(wider, 90, 110) == "at most 18.18 %"
    assert said(wider, 90, 99) == "0.91 to 18.18 %"
    assert said(wider, 103, 110) == "inconclusive"  # and the row as it is has 103
    assert said(wider, 110, 110) == "0.00 %"
    assert said(move, 96, 110) == "inconclusive"
    assert said(move, 96, 121) == "-19.09 to 12.73 %"
    assert said(move, 111, 121) == "-19.09 to -0.91 %"


def test_the_advice_in_words_ranks_as_the_table_does() -> None:
    # Device 2 has most of the work, though the way to it makes most of the rest of the bound.
    one = problem(
        3, 6, times={"forward": [1, 1, 9], "backward": [1, 1, 9], "weight": [1, 1, 9], "transfer": 3}, objective="span"
    )
    it = explained(one)
    advice = lines(it)[0]
    assert ": 10 % of stage 2's times and activation moved to stage 1" in advice
    table = [row[0] for row in rows(it)[1:]]
    named = [text.split(" (the best possible value")[0] for text in advice.split(": ", 1)[1].split(". Next: ")]
    assert named == table[:2]
    assert not any("micro-batches" in line for line in lines(it))
    falls = [
        gain[0] for effect in it.ranked() if it.is_conclusive(effect) and (gain := it.gain(effect)) and gain[0] > 0
    ]
    assert falls == sorted(falls, reverse=True)
    assert len(falls) > 2


def test_changes_keep_what_they_do_not_name() -> None:
    one = profile(4)
    found = {change.text: change for change in changes(one, 0, 0)}
    for change in found.values():
        new = change.problem
        if change.kind != "move":
            continue
        for times in ("forward", "backward", "fused"):
            before, after = (sum(getattr(costs_of(p), times)) * p.tick for p in (one, new))
            assert before == after
        assert sum(new.network.memory_in_flight) * new.resolution == 4 * 131
        assert new.room[0] == 4 * 131 / new.resolution
    transfer = found["transfers 10 % faster"].problem
    assert transfer.stages[0].transfer * transfer.tick == Fraction("0.5409")
    assert transfer.stages[0].forward * transfer.tick == Fraction("18.522")
    weight = found["weight passes (W) 10 % faster on device 0"].problem
    assert weight.splittable
    assert weight.stages[0].weight * weight.tick == Fraction("8.4033")
    assert weight.stages[0].fused * weight.tick == Fraction("18.086") + Fraction("8.4033")
    assert weight.stages[1].weight * weight.tick == Fraction("9.337")


def test_what_a_search_proves_beyond_words_is_part_of_the_story() -> None:
    one = profile(4)
    words = bottleneck(one)
    beyond = Certificate("some proof", 2 * words.strongest.value_ticks, "because", 2)
    it = bottleneck(one, beyond)
    assert (it.main_causes, it.device, it.strongest) == ((Cause.INTERPLAY,), 2, words.strongest)
    assert any("device 2" in line and "(some proof)" in line for line in bottleneck_sentences(it))
    assert bottleneck(one, Certificate("weak", 0, "none", 2)) == words


def test_a_stop_keeps_what_there_is() -> None:
    stop = Event()

    def on_progress(number: int, _of: int, _text: str) -> None:
        if number == 2:
            stop.set()

    it = explain(solve(profile(4), SURE), SURE, on_progress, stop)
    assert it.interrupted
    assert 1 <= len(it.effects) <= 2
    assert it.untried
    assert len(it.effects) + len(it.untried) == len(changes(profile(4), 0, 0))


FILE = """
name: small
devices: 2
microbatches: 4
time_unit: ms
times: {forward: 1.5, backward: 1.5, weight: 0.5, transfer: 0.1}
memory: {capacity: 2, activation: 1}
objective: span
"""


def test_solve_explain_json(small: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["solve", small, "--explain", "--explain-time", "30", "--workers", "1", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    explanation = document["explanation"]
    assert explanation["as_it_is"] == {"lower_bound": document["lower_bound"], "value": document["value"]}
    assert set(explanation["binds"]) <= set(Cause)
    assert explanation["certificates"][0]["value"] <= document["lower_bound"]
    kinds = {change["kind"] for change in explanation["changes"]}
    assert kinds == {"memory", "transfer", "passes", "move"}
    for change in explanation["changes"]:
        assert change["lower_bound"] <= change["value"]
        assert change["gain_at_least"] <= change["gain_at_most"]
    assert explanation["not_tried"] == []


@pytest.mark.usefixtures("pictures_are_empty")
def test_solve_explain_prints_the_story_and_writes_it(
    small: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    assert main(["solve", small, "--explain", "--workers", "1", "-o", str(out)]) == 0
    said = capsys.readouterr()
    for words in ("why not better?", "The strongest analytic bound is", "as it is", "transfers 10 % faster"):
        assert words in said.out
    assert "explaining 1 of" in said.err
    report = report_text(out / "report.html")
    assert "## Why not better" in report
    assert "\ntransfers 10 % faster | " in report
