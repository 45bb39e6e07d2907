"""Settings of a plan: of the best one, and of another where a runtime cannot run it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from commands.main import main
from commands.shared.partition_settings import chosen_formats, settings_document, settings_texts, with_partition
from heuristics.catalogue import HEURISTICS
from pipesched.errors import BadInput
from pipesched.files.plan_file import plan_problem_from
from pipesched.layers.partition import Partition, Recomputed
from pipesched.layers.plan_problem import Choice
from pipesched.results.plan import Candidate, ChoiceResult, Plan
from pipesched.results.solution import Status
from pipesched.simulation.simulator import simulate
from runtime.partitions.catalogue import PARTITION_FORMATS
from runtime.partitions.plan_settings import settings_of
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


def candidate(placement: str, chunks: int, schedule: str, *counts: int, again: tuple[int, ...] = ()) -> Candidate:
    choice = Choice(placement, chunks)
    recompute = tuple((Recomputed("moe", "full", number),) for number in again)
    partition = Partition(counts, recompute)
    problem = PROBLEM.problem(choice, partition)
    return Candidate(choice, partition, simulate(problem, HEURISTICS[schedule].order(problem)), schedule)


WAVE = candidate("wave", 4, "hanayo", 1, 1, 1, 1, 1, 1, 1, 1)
LINEAR = candidate("linear", 1, "1f1b", 4, 4, again=(1, 2))


def plan_of(best: Candidate, *others: Candidate) -> Plan:
    found = tuple(ChoiceResult(one.choice, None, one) for one in (best, *others))
    return Plan(PROBLEM, Status.FEASIBLE, None, found, best)


def test_the_best_plan_is_written_where_it_can_be() -> None:
    (found,) = settings_of(plan_of(LINEAR, WAVE), [PARTITION_FORMATS["flagscale"]])
    assert found.refusal is None and found.settings is not None
    document = settings_document([found])
    assert document == {
        "settings": {
            "flagscale-layer-split": [3, 3],
            "flagscale-recompute-num-layers-per-stage-micro-batch": [[1, 4, 1], [1, 4, 2]],
        }
    }


def test_another_plan_is_written_where_the_best_cannot_be() -> None:
    found = settings_of(plan_of(WAVE, LINEAR), [PARTITION_FORMATS["flagscale"], PARTITION_FORMATS["megatron"]])
    document: Any = settings_document(found)
    assert document["settings"] == {}
    refused = document["settings_refused"]
    assert refused["flagscale"]["reason"].startswith("flagscale: not supported: ")
    assert refused["flagscale"]["instead"]["placement"] == "linear"
    assert refused["flagscale"]["instead"]["value"] == float(LINEAR.value)
    assert refused["flagscale"]["instead"]["settings"]["flagscale-layer-split"] == [3, 3]
    # Recomputing other numbers of layers on each stage is nothing Megatron can be told: two on each.
    assert refused["megatron"]["instead"]["recompute"] == [{"full": 2}, {"full": 2}]
    assert refused["megatron"]["instead"]["value"] > float(LINEAR.value)
    texts = settings_texts(plan_of(WAVE, LINEAR), found)
    assert "hetero_pipeline_layer_split" in texts["Settings: flagscale"]


DENSE = {**LAYERS[1], "name": "dense", "count": 2, "activation": 1}
MIXED = plan_problem_from({"devices": 2, "microbatches": 4, "layers": [LAYERS[0], DENSE, LAYERS[1], LAYERS[2]]})


def test_a_plan_that_recomputes_the_last_layers_of_a_stage_recomputes_its_first_ones_instead() -> None:
    """As many as hold no more memory, in the same order: exact value, and never more memory than the plan."""
    partition = Partition((5, 5), ((Recomputed("moe", "full", 2),), (Recomputed("moe", "full", 1),)))
    choice = Choice("linear", 1)
    problem = MIXED.problem(choice, partition)
    best = Candidate(choice, partition, simulate(problem, HEURISTICS["1f1b"].order(problem)), "1f1b")
    plan = Plan(MIXED, Status.FEASIBLE, None, (ChoiceResult(choice, None, best),), best)
    names = ("flagscale", "megatron", "torchtitan")
    found = {one.form.name: one for one in settings_of(plan, [PARTITION_FORMATS[name] for name in names])}
    recompute = {name: one.document()["instead"]["recompute"] for name, one in found.items()}  # type: ignore[index]
    assert recompute == {
        "flagscale": [{"full": 4}, {"full": 1}],  # dense layers first, then two that keep what the plan kept less
        "megatron": [{"full": 4}, {"full": 4}],
        "torchtitan": [{"full": 4}, {"full": 4}],
    }
    values = [float(one.candidate.value) for one in found.values() if one.candidate]
    assert float(best.value) < values[0] < values[1] == values[2]
    for one in found.values():
        assert one.candidate is not None
        held = one.candidate.timeline.problem
        orders = HEURISTICS["1f1b"].order(held)
        assert all(now.activation <= then.activation for now, then in zip(held.stages, problem.stages, strict=True))
        assert simulate(held, orders).starts == one.candidate.timeline.starts


def test_without_a_plan_there_are_no_settings() -> None:
    assert settings_of(Plan(PROBLEM, Status.UNKNOWN, None, ()), PARTITION_FORMATS) == []


def test_formats_are_named_before_the_search() -> None:
    assert [form.name for form in chosen_formats("megatron, deepspeed,megatron")] == ["megatron", "deepspeed"]
    assert len(chosen_formats("all")) == len(PARTITION_FORMATS.names()) and chosen_formats(None) == []
    with pytest.raises(BadInput) as refusal:
        chosen_formats("megatorn,torchtitan,none")
    assert len(refusal.value.mistakes) == 2


SETTINGS = [  # the model's embedding, six layers and head on two devices
    ("megatron=Et*2|t*4L", (3, 5)),
    ("megatron=E|t*4|tt|L", (1, 4, 2, 1)),
    ("mindspeed=2,4", (3, 5)),
    ("mindspeed=[[1,2],[1,2]]", (2, 1, 2, 3)),
    ("flagscale=[2,4]", (3, 5)),
    ("colossalai=2,4", (3, 5)),
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


@pytest.mark.parametrize(
    "text", ["Et*2|t*4L", "megatorn=E", "megatron=Et*9|L", "megatron=E|tt|tt|tt|t|L", "flagscale=[6,0,0]"]
)
def test_settings_that_do_not_fit_the_file_are_refused(text: str) -> None:
    with pytest.raises(BadInput) as refusal:
        with_partition(PROBLEM, text)
    assert all(line.startswith("--partition: ") for line in refusal.value.mistakes)


def test_plan_writes_settings_that_it_reads_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, folder = tmp_path / "plan.yaml", tmp_path / "out"
    document = {"devices": 2, "microbatches": 4, "layers": LAYERS, "placement": "linear", "schedule": "1f1b"}
    source.write_text(json.dumps(document))
    command = ["plan", str(source), "--json", "--workers", "1", "--settings", "all"]
    assert main([*command, "-o", str(folder)]) == 0
    found = json.loads(capsys.readouterr().out)
    assert set(found["settings"]) == {form.main for form in PARTITION_FORMATS}
    assert {path.name for path in folder.glob("partition.*")} == {
        f"partition{form.suffix}" for form in PARTITION_FORMATS
    }
    assert "hetero_pipeline_layer_split" in report_text(folder / "report.html")
    layout = f"megatron={found['settings']['megatron-layout']}"
    assert main([*command, "--partition", layout]) == 0
    again = json.loads(capsys.readouterr().out)
    assert (again["partition"], again["value"]) == (found["partition"], found["value"])
