"""Frozen stages and layers: as stages written by hand without backwards, but for gradients that nobody sends."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

from heuristics.catalogue import HEURISTICS
from pipesched.errors import BadInput
from pipesched.files.plan_answers.problem_document import plan_document, plan_from_document
from pipesched.files.plan_file import plan_problem_from
from pipesched.files.problem_file import problem_from
from pipesched.files.problems.document import problem_document
from pipesched.layers.partition import Partition
from pipesched.problem.passes import BW, F, Pass
from pipesched.problem.problem import Problem
from pipesched.schedule.schedule import schedule_of
from pipesched.simulation.simulator import simulate
from pipesched.sweeps.cells import content_key
from pipesched.validation.validator import validate
from runtime.exporters.catalogue import EXPORTERS
from runtime.running.job import refuse_unequal
from solver.planning.plan import plan
from solver.solve import solve
from tests.support.counted import counted

DOCUMENT = {"devices": 4, "microbatches": 5, "frozen": 2, "times": {"forward": 1, "backward": 2, "weight": 1}}
LAYERS: list[dict[str, Any]] = [
    {"name": "embedding", "forward": 0.5, "backward": 0.5, "weight": 0.5, "activation": 1, "memory": 2, "frozen": True},
    {"name": "layer", "count": 4, "forward": 1, "backward": 1, "weight": 1, "activation": 2, "frozen": True},
    {"name": "mtp", "count": 2, "forward": 2, "backward": 2, "weight": 2, "activation": 3, "freed_by_backward": 1},
    {"name": "head", "forward": 1, "backward": 1.5, "weight": 1, "activation": 2, "frozen": True},
]


def _value(problem: Problem) -> Fraction:
    found = solve(problem, counted(2))
    assert found.value_ticks is not None and found.value_ticks == found.lower_bound_ticks
    return found.value_ticks * problem.tick


def test_as_stages_without_backwards_written_by_hand() -> None:
    by_hand = {
        "times": {"forward": 1, "backward": [0, 0, 2, 2], "weight": [0, 0, 1, 1]},
        "memory": {"activation": [0, 0, 1, 1]},
        "frozen": 0,
    }
    frozen, plain = problem_from(DOCUMENT), problem_from(DOCUMENT | by_hand)
    assert _value(frozen) == _value(plain)
    assert [stage.activation for stage in frozen.stages] == [0, 0, 1, 1]


def test_no_gradient_is_sent_to_a_frozen_stage() -> None:
    """One micro-batch: three transfers there, one back, where stages by hand wait for three."""
    one: dict[str, Any] = DOCUMENT | {"microbatches": 1, "times": {"forward": 1, "backward": 2, "transfer": 10}}
    # F 4, three transfers, two backwards and the transfer between them.
    assert _value(problem_from(one)) == 4 + 30 + 4 + 10
    by_hand = one | {"frozen": 0, "times": {"forward": 1, "backward": [0, 0, 2, 2], "transfer": 10}}
    assert _value(problem_from(by_hand)) == 4 + 30 + 4 + 30
    # So a stored result of the one is none of the other, though all their numbers are the same.
    frozen = problem_from(one)
    sent = replace(frozen, stages=tuple(replace(stage, forward_only=False) for stage in frozen.stages))
    assert _value(sent) == 4 + 30 + 4 + 30 and content_key(sent) != content_key(frozen)


def test_the_validator_lets_backwards_of_frozen_stages_run_at_once() -> None:
    document = {"devices": 2, "microbatches": 1, "frozen": 1, "times": {"forward": 1, "backward": 2, "transfer": 3}}
    problem = problem_from(document)
    orders = [[Pass(F, stage, 0), Pass(BW, stage, 0)] for stage in (0, 1)]
    timeline = simulate(problem, schedule_of(orders, "by hand"))
    assert timeline.end(Pass(BW, 0, 0)) == timeline.end(Pass(BW, 1, 0)) == 7
    assert validate(timeline) == []


def test_a_file_is_read_back() -> None:
    modules = {"vision": {"placement": [0], "feeds": 1, "frozen": True, "times": {"forward": 1, "backward": 2}}}
    plain = DOCUMENT | {"times": {"forward": 1, "backward": 2}}
    for document in (DOCUMENT, DOCUMENT | {"placement": "bidirectional"}, plain | {"modules": modules}):
        problem = problem_from(document)
        assert problem_from(problem_document(problem)) == problem
    assert problem_document(problem_from(DOCUMENT))["frozen"] == 2


@pytest.mark.parametrize(
    ("more", "line"),
    [
        ({"frozen": -1}, "frozen: found -1; allowed: a whole number of at least 0"),
        ({"frozen": 5}, "frozen: found 5; allowed: 0 to 4, the stages that a micro-batch passes"),
        ({"objective": "span"}, "objective: found span with frozen; allowed: makespan or period"),
        (
            {"times": {"forward": 1, "backward": 2}, "modules": {"vision": {"times": {"forward": 1, "backward": 2}}}},
            "modules.vision.feeds: found stage 0, which is frozen; allowed: a stage that trains, or frozen: true",
        ),
    ],
)
def test_mistakes_of_a_problem(more: dict[str, Any], line: str) -> None:
    with pytest.raises(BadInput) as refused:
        problem_from(DOCUMENT | more)
    assert refused.value.mistakes == (f"problem: {line}",)


def _plan(layers: list[dict[str, Any]], **more: Any) -> Any:
    return plan_problem_from({"devices": 3, "microbatches": 4, "placement": "linear", "layers": layers} | more)


def test_layers_by_their_place() -> None:
    """Before all that train forwards alone; behind them B, which gives back the whole activation."""
    own = {layer.name: layer for layer in _plan(LAYERS, parameters={"step": {}}, objective="iteration").model.layers}
    before, after = own["layer"], own["head"]
    assert (before.backward, before.weight, before.activation, before.forward_only) == (0, 0, 0, True)
    assert (after.backward, after.weight, after.activation, after.forward_only) == (Fraction(3, 2), 0, 2, False)
    assert after.freed_by_backward == 2 and after.full_backward == Fraction(3, 2)
    assert own["embedding"].memory == 2 and own["mtp"].weight == 2


def test_a_plan_is_that_of_the_numbers_by_hand() -> None:
    by_hand = [
        LAYERS[0] | {"backward": 0, "weight": 0, "activation": 0, "frozen": False},
        LAYERS[1] | {"backward": 0, "weight": 0, "activation": 0, "frozen": False},
        LAYERS[2],
        LAYERS[3] | {"weight": 0, "freed_by_backward": 2, "frozen": False},
    ]
    answers = [plan(_plan(layers), counted(2)) for layers in (LAYERS, by_hand)]
    values = [answer.value for answer in answers]
    assert values[0] == values[1] == answers[0].lower_bound == answers[1].lower_bound


def test_stages_of_a_partition() -> None:
    asked = _plan(LAYERS, transfer=1)
    (choice,) = asked.choices
    for counts, frozen in (((5, 1, 2), 1), ((2, 3, 3), 2), ((6, 1, 1), 0)):
        problem = asked.problem(choice, Partition(counts))
        assert sum(stage.forward_only for stage in problem.stages) == frozen, counts
        again = problem_from(problem_document(problem))
        assert [stage.forward_only for stage in again.stages] == [stage.forward_only for stage in problem.stages]
    assert asked.least_lags(choice) == [(asked.cluster.transfer / asked.tick, 0)] * 2


def test_plans_are_read_back() -> None:
    encoder = {"encoder": {"forward": 1, "backward": 2, "weight": 1, "frozen": True, "placement": "first-stage"}}
    for asked in (_plan(LAYERS), _plan(LAYERS, **encoder)):
        assert plan_from_document(plan_document(asked), "plan") == asked


def test_layers_behind_an_encoder_that_trains_need_gradients() -> None:
    encoder = {"forward": 1, "backward": 2, "weight": 1, "placement": "first-stage"}
    assert [_plan(LAYERS, encoder=encoder | {"frozen": frozen}).model.before_training for frozen in (False, True)] == [
        0,
        5,
    ]


def test_what_an_unsplit_backward_is_taken_for() -> None:
    layers = [
        {key: value for key, value in one.items() if key not in ("weight", "freed_by_backward")} for one in LAYERS
    ]
    assert _plan(layers).notes == (
        "layers: head: frozen, and its backward, 1.5, is not split from a W; it is taken as that for its input alone",
    )


@pytest.mark.parametrize(
    ("more", "line"),
    [
        (
            {"layers": [*LAYERS, LAYERS[1]]},
            "layers[4].name: found 'layer', frozen behind a layer that trains, as is layers[1] before all of these; "
            "allowed: another name, since only this one has a backward",
        ),
        (
            {"objective": "span"},
            "objective: found span with frozen layers before all that train; allowed: makespan",
        ),
        (
            {"stage_overhead": {"backward": 1}},
            "stage_overhead.backward: found with frozen layers before all that train; allowed: 0",
        ),
        (
            {"parameters": {"reduce": {"time": 1}}, "objective": "iteration"},
            "parameters.reduce.time: found with frozen layers before all that train; allowed: 0",
        ),
        (
            {"sequence_chunks": 2, "layers": [LAYERS[0] | {"kept_for_later": 1}, *LAYERS[1:]]},
            "layers[0].kept_for_later: found with sequence_chunks on a frozen layer before all that train; allowed: 0, "
            "since no backward gives keys and values back",
        ),
    ],
)
def test_mistakes_of_a_plan(more: dict[str, Any], line: str) -> None:
    with pytest.raises(BadInput) as refused:
        _plan(more.get("layers", LAYERS), **{key: value for key, value in more.items() if key != "layers"})
    assert refused.value.mistakes == (f"plan: {line}",)


MODEL = {"layers": 8, "hidden": 1024, "vocabulary": 8192, "ffn": 4096, "sequence": 1024, "attention": {"heads": 8}}
HARDWARE = {"sustained_tflops": 300, "memory": 80, "pipeline_bandwidth": 50}


def _derived(**more: Any) -> Any:
    document = {"devices": 2, "microbatches": 4, "model": MODEL | {"mtp_layers": 1} | more, "hardware": HARDWARE}
    return {layer.name: layer for layer in plan_problem_from(document).model.layers}


def test_derived_layers_hold_weights_alone() -> None:
    """Of 18 bytes a parameter two are left; behind a layer that trains B stays as it is, and needs no inputs of
    products."""
    every, before, after = _derived(), _derived(frozen=["embedding", "layer"]), _derived(frozen=["layer"])
    for frozen in (before, after):
        assert frozen["layer"].memory == pytest.approx(every["layer"].memory / 9, abs=1e-3)
        assert frozen["layer"].weight == 0 and frozen["mtp"] == every["mtp"]
    assert (before["layer"].backward, before["layer"].activation) == (0, 0)
    assert after["layer"].backward == every["layer"].backward
    inputs = 2 * MODEL["sequence"] * Fraction(2 * MODEL["hidden"] + MODEL["ffn"], 2**30)
    assert every["layer"].activation - after["layer"].activation == pytest.approx(float(inputs), abs=1e-4)


def test_a_model_has_layers_of_these_names() -> None:
    with pytest.raises(BadInput) as refused:
        _derived(frozen=["moe"])
    line = "plan: model.frozen: found moe; allowed: the model's layers, embedding, layer, mtp, head"
    assert refused.value.mistakes == (line,)


def test_no_runtime_is_told_of_backwards_that_no_gradient_reaches() -> None:
    """Runtimes run a backward of every stage and send it a gradient: the order is none of theirs."""
    one = problem_from(DOCUMENT)
    timeline = simulate(one, HEURISTICS["1f1b"].order(one))
    for exporter in EXPORTERS:
        if not exporter.every_feature:
            with pytest.raises(BadInput, match="stages are frozen"):
                exporter.export(timeline)
    with pytest.raises(BadInput, match="run: found frozen"):
        refuse_unequal("run", one)


def test_no_parameters_are_gathered_for_backwards_of_frozen_stages() -> None:
    """Device 0 gathers each stage once: 1 + 3 + 3, then 2 + 3 + 2 + 3 + 2."""
    gather = {"time": [1, 1, 2], "memory": 1, "on": "compute", "keep": {"window": 1}}
    problem = problem_from(
        {
            "devices": 2,
            "microbatches": 2,
            "placement": [0, 1, 0],
            "times": {"forward": 3, "backward": 2},
            "frozen": 2,
            "objective": "iteration",
            "parameters": {"gather": gather},
        }
    )
    assert _value(problem) == 19


def test_no_reduction_waits_for_frozen_stages_that_share_its_parameters() -> None:
    """Three forwards on each device, one backward, and the reduction of 4, which stage 3 alone computes gradients for."""
    document = {
        "devices": 2,
        "microbatches": 3,
        "placement": [0, 1, 1, 0],
        "chains": [{"stages": [0, 1], "microbatches": 2}, {"stages": [2, 3], "microbatches": 1}],
        "times": {"forward": 3, "backward": 1},
        "frozen": 1,
        "objective": "iteration",
        "parameters": {"reduce": {"time": [4, 1, 4, 1], "on": "dp"}, "holders": [0, 1, 1, 0]},
    }
    assert _value(problem_from(document)) == 9 + 1 + 4


def test_stages_of_frozen_layers_drop_their_parameters_after_the_last_forward() -> None:
    """Device 0 has a frozen stage and one that trains, each with five of memory, and room for two activations."""
    layer = {"count": 2, "forward": 1, "backward": 1, "activation": 1, "gather": 1, "gathered": 5}
    document = {
        "devices": 2,
        "microbatches": 2,
        "layers": [{"name": "a", "frozen": True} | layer, {"name": "b"} | layer],
        "placement": "interleaved",
        "chunks": 2,
        "memory": {"capacity": 7},
        "objective": "iteration",
        "parameters": {"gather": {"time": 0, "on": "compute", "memory": 0, "keep": "always"}},
    }
    found = plan(plan_problem_from(document), counted(2))
    assert found.value == 10
