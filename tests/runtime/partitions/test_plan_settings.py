"""Settings of a plan: of the best one, and of another where a runtime cannot run it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from commands.main import main
from commands.shared.partition_settings import chosen_formats, settings_document, settings_texts, with_partition
from heuristics.catalogue import HEURISTICS, schedule_named
from pipesched.errors import BadInput
from pipesched.files.plan_file import plan_problem_from
from pipesched.layers.partition import Partition, Recomputed
from pipesched.layers.plan_problem import Choice
from pipesched.results.plan import ChoiceResult, Plan, PlanCandidate
from pipesched.results.solution import Status
from pipesched.schedule.metrics import measure
from pipesched.simulation.simulator import simulate
from pipesched.validation.validator import validate
from runtime.partitions.catalogue import PARTITION_FORMATS, PartitionFormat
from runtime.partitions.plan_limits import restricted
from runtime.partitions.plan_settings import figures, settings_of
from tests.support.in_turn import in_turn
from tests.support.report_text import report_text

LAYERS: list[dict[str, Any]] = [
    {"name": "embedding", "forward": 1, "backward": 1},
    {
        "name": "moe",
        "count": 6,
        "activation": 3,
        "forward": 2,
        "backward": 4,
        "recompute": [{"name": "full", "time": 2, "keeps": 0.1}],
    },
    {"name": "head", "forward": 3, "backward": 6},
]
PROBLEM = plan_problem_from({"devices": 2, "microbatches": 4, "layers": LAYERS, "name": "mine"})


def candidate(placement: str, chunks: int, schedule: str, *counts: int, again: tuple[int, ...] = ()) -> PlanCandidate:
    choice = Choice(placement, chunks)
    recompute = tuple((Recomputed("moe", "full", number),) for number in again)
    partition = Partition(counts, recompute)
    problem = PROBLEM.problem(choice, partition)
    return PlanCandidate(choice, partition, simulate(problem, HEURISTICS[schedule].order(problem)), schedule)


WAVE = candidate("wave", 4, "hanayo", 1, 1, 1, 1, 1, 1, 1, 1)
LINEAR = candidate("linear", 1, "1f1b", 4, 4, again=(1, 2))


def plan_of(best: PlanCandidate, *others: PlanCandidate) -> Plan:
    found = tuple(ChoiceResult(one.choice, None, one) for one in (best, *others))
    return Plan(PROBLEM, Status.FEASIBLE, None, found, best)


def test_settings_have_the_figures_of_their_plan() -> None:
    free = plan_of(WAVE, LINEAR)
    found = settings_of(PARTITION_FORMATS["flagscale"], plan_of(LINEAR, WAVE), free)
    assert found.refusal is None and found.settings is not None
    document: Any = settings_document([found])["settings"]
    assert set(document) == {"flagscale-layer-split", "flagscale-recompute-num-layers-per-stage-micro-batch"}
    assert document["flagscale-layer-split"]["args"] == [3, 3]
    assert document["flagscale-recompute-num-layers-per-stage-micro-batch"]["args"] == [[1, 4, 1], [1, 4, 2]]
    metrics = measure(LINEAR.timeline)
    for one in document.values():
        assert one["value"] == float(LINEAR.value) and one["free_value"] == float(WAVE.value)
        assert one["peak_memory"] == metrics.peak_memory
        assert one["lower_bound"] == 0 and one["schedule"] == "1f1b"
    lines = found.settings.text.splitlines()
    assert all(f"# {figure}" in lines for figure in found.figures)
    assert f"makespan {float(LINEAR.value):g}" in found.figures[0] and "peak memory" in found.figures[0]
    layers = [{key: one[key] for key in one if key not in ("activation", "recompute")} for one in LAYERS]
    light = plan_problem_from({"devices": 2, "microbatches": 4, "layers": layers}).problem(
        LINEAR.choice, Partition((4, 4))
    )
    timed = replace(LINEAR, timeline=simulate(light, LINEAR.timeline.schedule), partition=Partition((4, 4)))
    assert "memory" not in figures(PARTITION_FORMATS["flagscale"], plan_of(timed), free)[0]


def test_an_order_that_a_runtime_does_not_run_has_no_settings() -> None:
    """They would not be those of the plan's time: `--settings` searches for a plan in an order that it runs."""
    found = settings_of(PARTITION_FORMATS["mindformers"], plan_of(replace(LINEAR, schedule="pipesched")), plan_of(WAVE))
    assert found.settings is None and found.refusal is not None
    assert settings_document([found]) == {
        "settings": {},
        "settings_refused": {"mindformers": {"reason": found.refusal, "instead": None}},
    }


def test_a_partition_that_a_runtime_cannot_be_told_has_no_settings() -> None:
    found = settings_of(PARTITION_FORMATS["torchtitan"], plan_of(LINEAR), plan_of(WAVE))
    assert found.settings is None and found.refusal is not None
    assert found.refusal.startswith("torchtitan: not supported: 3 of 6 layers recomputed")
    assert settings_texts([found], None) == {"torchtitan": ([found.refusal], "")}


def test_without_a_plan_there_are_no_settings() -> None:
    nothing = Plan(PROBLEM, Status.UNKNOWN, None, ())
    assert all(settings_of(form, nothing, nothing).settings is None for form in PARTITION_FORMATS)


def test_formats_are_named_before_the_search() -> None:
    assert [form.name for form in chosen_formats("megatron, deepspeed,megatron")] == ["megatron", "deepspeed"]
    assert len(chosen_formats("all")) == len(PARTITION_FORMATS.names()) and chosen_formats(None) == []
    with pytest.raises(BadInput) as refusal:
        chosen_formats("megatorn,torchtitan,none")
    assert len(refusal.value.mistakes) == 2


SETTINGS = [  # the model's embedding, six layers and head on two devices
    ("megatron=Et*2|t*4L", (3, 5)),
    ("megatron=E|t*4|tt|L", (1, 4, 2, 1)),
    ("megatron=MM|*-EE", (3, 5)),  # of a hybrid model
    ("mindspeed=2,4", (3, 5)),
    ("mindspeed=[[1,2],[1,2]]", (2, 1, 2, 3)),
    ("flagscale=[2,4]", (3, 5)),
    ("colossalai=2,4", (3, 5)),
    ("vllm=2,4", (3, 5)),
    ("sglang=2,4", (3, 5)),
    ("mindformers=[[-1,1]]", (3, 5)),
    ("deepspeed=[0,3,8]", (3, 5)),
    (
        'torchtitan=[["tok_embeddings","layers.0","layers.1"],["layers.2","layers.3","layers.4","layers.5","norm","output"]]',
        (3, 5),
    ),
]


@pytest.mark.parametrize(("text", "counts"), SETTINGS)
def test_the_partition_of_a_setting_is_planned(text: str, counts: tuple[int, ...]) -> None:
    problem = with_partition(PROBLEM, text)
    assert problem.counts == counts
    assert {len(choice.on(2).chains[0]) for choice in problem.choices} == {len(counts)}


def test_a_setting_may_not_part_layers_that_share_a_stage() -> None:
    layers = [*LAYERS[:-1], LAYERS[-1] | {"with_previous": True}]
    problem = plan_problem_from({"devices": 2, "microbatches": 4, "layers": layers})
    assert with_partition(problem, "vllm=2,4").counts == (3, 5)
    with pytest.raises(BadInput, match="--partition: stage 1 begins with head, which shares a stage with the layer b"):
        with_partition(problem, "vllm=6,0")


@pytest.mark.parametrize(
    ("text", "devices"), [("vllm=6", [1]), ("vllm=2,4", [2]), ("flagscale=[2,4]", [2]), ("deepspeed=[0,3,8]", [2])]
)
def test_sets_of_devices_are_kept_on_which_the_setting_means_the_same(text: str, devices: list[int]) -> None:
    """Of one device and one more that may be left out."""
    classes = [{"devices": 1}, {"devices": "0..1", "speed": 0.5}]
    whole = plan_problem_from({"cluster": classes, "chunks": 1, "microbatches": 4, "layers": LAYERS})
    given = with_partition(whole, text)
    assert sorted(one.devices for _, one in whole.clusters) == [1, 2]
    assert [one.devices for _, one in given.clusters] == devices
    assert given.counts is not None and len(given.counts) == devices[0]
    with pytest.raises(BadInput, match="found 3 entries; allowed: 2"):
        with_partition(whole, "vllm=2,2,2")


@pytest.mark.parametrize(
    "text", ["Et*2|t*4L", "megatorn=E", "megatron=Et*9|L", "megatron=E|tt|tt|tt|t|L", "flagscale=[6,0,0]"]
)
def test_settings_that_do_not_fit_the_file_are_refused(text: str) -> None:
    with pytest.raises(BadInput) as refusal:
        with_partition(PROBLEM, text)
    assert all(line.startswith("--partition: ") for line in refusal.value.mistakes)


@pytest.mark.parametrize("text", ["megatron=Ett|ttttmmL", "megatron=MM|*-EE/*-/*-", "deepspeed=[0,3,10]"])
def test_settings_with_other_multi_token_prediction_than_the_file_are_refused(text: str) -> None:
    def given(mtp: int) -> tuple[int, ...] | None:
        layers = [*LAYERS[:-1], *([{"name": "mtp", "forward": 1, "backward": 2}] * mtp), LAYERS[-1]]
        return with_partition(plan_problem_from({"devices": 2, "microbatches": 4, "layers": layers}), text).counts

    assert given(2) == (3, 7)
    for mtp, allowed in ((0, "none, as in the model"), (1, "the model's 1")):
        with pytest.raises(BadInput, match=f"found 2 multi-token prediction layers; allowed: {allowed}"):
            given(mtp)


IN_A_LINE = [form for form in PARTITION_FORMATS if "linear" in form.limits.placements and not form.limits.forwards_only]


@pytest.mark.usefixtures("pictures_are_empty", "work_is_counted")
def test_plan_writes_settings_that_it_reads_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, folder = tmp_path / "plan.yaml", tmp_path / "out"
    document = {"devices": 2, "microbatches": 4, "layers": LAYERS, "placement": "linear", "schedule": "1f1b"}
    source.write_text(json.dumps(document))
    command = ["plan", str(source), "--json", "--workers", "1", "--settings", "all"]
    assert main([*command, "-o", str(folder)]) == 0
    found = json.loads(capsys.readouterr().out)
    assert set(found["settings"]) == {form.main for form in IN_A_LINE}
    for one in found["settings"].values():
        assert one["value"] == one["lower_bound"] == one["free_value"] == found["value"]
        assert one["peak_memory"] == found["peak_memory"]
    assert {path.name for path in folder.glob("partition.*")} == {f"partition{form.suffix}" for form in IN_A_LINE}
    assert "hetero_pipeline_layer_split" in report_text(folder / "report.html")
    layout = f"megatron={found['settings']['megatron-layout']['text']}"
    assert main([*command, "--partition", layout]) == 0
    again = json.loads(capsys.readouterr().out)
    assert (again["partition"], again["value"]) == (found["partition"], found["value"])


TIGHT = {
    "devices": 2,
    "microbatches": 4,
    "time_unit": "ms",
    "layers": [
        {
            "name": "moe",
            "count": 3,
            "forward": 2,
            "backward": 2,
            "weight": 2,
            "activation": 1,
            "recompute": [{"name": "full", "time": 2, "keeps": 0}],
        },
        {"name": "head", "forward": 1, "backward": 2},
    ],
    "memory": {"capacity": 3},
    "placement": "linear",
}


@pytest.mark.usefixtures("pictures_are_empty", "work_is_counted")
def test_what_settings_say_is_what_their_runtime_takes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The free plan splits backwards, which Megatron's order does not: its settings have its own time, and say so."""
    source, folder = tmp_path / "plan.yaml", tmp_path / "out"
    source.write_text(json.dumps(TIGHT))
    words = ["plan", str(source), "--workers", "1", "--time-limit", "4", "--settings", "megatron", "-o", str(folder)]
    assert main([*words, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    (one,) = found["settings"].values()
    assert one["schedule"] == "1f1b" or one["schedule"].startswith("interleaved-1f1b")
    assert one["lower_bound"] <= one["value"] and found["value"] == one["free_value"] < one["value"]
    plan = plan_problem_from(TIGHT)
    choice = Choice("interleaved" if len(one["partition"]) > 2 else "linear", len(one["partition"]) // 2)
    again = tuple(tuple(Recomputed("moe", *way) for way in stage.items()) for stage in one["recompute"])
    problem = plan.problem(choice, Partition(tuple(one["partition"]), again))
    own = simulate(problem, schedule_named(one["schedule"]).order(problem))
    assert validate(own) == []
    assert one["value"] == float(measure(own).makespan_ticks * problem.tick)
    text = (folder / "partition.megatron.args").read_text()
    assert f"makespan {one['value']:g} ms" in text and f"takes {found['value']:g} ms" in text
    main(words)
    printed = capsys.readouterr().out
    assert "with these settings, in its own order" in printed and "that megatron can express and run" in printed


SHAPE = {"layers": 6, "hidden": 512, "vocabulary": 8000, "attention": {"heads": 8}, "ffn": 1024, "sequence": 256}
UNTRAINED: list[tuple[dict[str, Any], str | None]] = [
    ({"layers": LAYERS}, None),
    (
        {"layers": [layer | {"frozen": layer["name"] != "head"} for layer in LAYERS]},
        "the plan's layers embedding, moe are frozen; these settings do not freeze them: the job must.",
    ),
    (  # behind a layer that trains, where a backward is left
        {"layers": [layer | {"frozen": layer["name"] == "head"} for layer in LAYERS]},
        "the plan's layers head are frozen; these settings do not freeze them: the job must.",
    ),
    (
        {"model": SHAPE | {"frozen": ["embedding"]}},
        "the plan's layers embedding are frozen; these settings do not freeze them: the job must.",
    ),
    (
        {"model": SHAPE | {"lora": {"rank": 16}}},
        "in the plan only adapters of rank 16 train, in all layers but embedding, head; these settings neither add them "
        "nor freeze the weights: the job must.",
    ),
]


@in_turn("form", [form for form in PARTITION_FORMATS if "linear" in form.limits.placements], ids=lambda form: form.name)
@in_turn(("layers", "said"), UNTRAINED)
def test_settings_say_what_their_plan_does_not_train(
    form: PartitionFormat, layers: dict[str, Any], said: str | None
) -> None:
    """One note, at the head of the file and in `--json` too; none where all trains, and none of formats that serve."""
    rates = {"sustained_tflops": 300, "memory": 60, "pipeline_bandwidth": 25}
    more = {"hardware": rates} if "model" in layers else {}
    whole = plan_problem_from({"devices": 2, "microbatches": 4, "placement": "linear"} | layers | more)
    if form.limits.forwards_only:
        model = replace(whole.model, layers=tuple(replace(one, forward_only=True) for one in whole.model.layers))
        whole = replace(whole, model=model)
    if form.limits.every_stage_trains and whole.model.before_training == 7:
        with pytest.raises(BadInput, match="too few behind them for 2 devices"):
            restricted(whole, form.name, form.limits)
        return
    problem, words = restricted(whole, form.name, form.limits)
    choice, partition = Choice("linear", 1), Partition((4, 4))
    own = problem.problem(choice, partition)
    best = PlanCandidate(choice, partition, simulate(own, HEURISTICS["1f1b"].order(own)), "1f1b")
    plan = Plan(problem, Status.FEASIBLE, None, (ChoiceResult(choice, None, best),), best)
    found = settings_of(form, plan, plan, words)
    assert found.settings is not None, found.refusal
    expected = [] if said is None or form.limits.forwards_only else [f"{form.name}: {said}"]
    noted = [line for line in found.settings.notes if "the job must" in line]
    assert noted == expected
    assert [line for line in found.settings.text.splitlines() if "the job must" in line] == [
        f"# {one}" for one in noted
    ]
    for one in found.document().values():
        assert isinstance(one, dict) and one["notes"] == list(found.settings.notes)
