"""Plan files with a batch of a fixed size: layers by share, or micro-batches from a model's size of one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pipesched.errors import BadInput
from pipesched.files.batch_sizes import with_each_size
from pipesched.files.exact_numbers import read_yaml
from pipesched.files.plan_file import plan_problem_from
from pipesched.files.plans.schema import json_schema as plan_schema
from pipesched.files.problem_file import problem_from
from pipesched.files.problems.schema import json_schema as problem_schema
from pipesched.sweeps.cells import sweep_of
from tests.support.editor import accepts

EXAMPLES = Path(__file__).parents[3] / "examples" / "sizes"
LAYER: dict[str, Any] = {
    "name": "block", "count": 4, "forward": 8, "backward": 12, "weight": 4, "fused": 14, "memory": 3, "activation": 16,
    "freed_by_backward": "25%", "recompute": [{"name": "full", "time": 6, "keeps": "50%"}], "reduce": 2,
}  # fmt: skip
PLAN: dict[str, Any] = {
    "devices": 2,
    "microbatches": 4,
    "time_unit": "ms",
    "batch": {"size": 8, "overhead": {"forward": "500 us", "backward": 1, "transfer": 0.1}},
    "layers": [LAYER],
    "transfer": {"time": 2, "on": "comm"},
    "memory": {"capacity": 60},
    "parameters": {"reduce": {"time": 1}},
    "objective": "iteration",
}
SHARED: dict[str, Any] = PLAN | {
    "batch": None,
    "layers": [
        LAYER
        | {"forward": 2, "backward": 3, "weight": 1, "fused": 3.5, "activation": 4, "freed_by_backward": 1}
        | {"recompute": [{"name": "full", "time": 1.5, "keeps": 0.5}]}
    ],
    "stage_overhead": {"forward": 0.5, "backward": 1},
    "transfer": {"time": 0.6, "on": "comm"},
}
MODEL: dict[str, Any] = {
    "devices": 2,
    "batch": {"size": 32},
    "model": {
        "layers": 3, "hidden": 64, "vocabulary": 512, "ffn": 128, "sequence": 128, "attention": {"heads": 4},
        "microbatch_size": 2, "parallel": {"data": 4},
    },
    "hardware": {"sustained_tflops": 1, "memory": 1, "pipeline_bandwidth": 10},
}  # fmt: skip


def test_layers_have_a_share_and_stages_the_overhead() -> None:
    assert plan_problem_from(PLAN) == plan_problem_from(SHARED)


def test_links_by_pair_have_a_share_unless_they_take_no_time() -> None:
    found = plan_problem_from(PLAN | {"transfer": [[0, 2], [0, 0]]})
    assert found.cluster == plan_problem_from(SHARED | {"transfer": [[0, "3/5"], [0, 0]]}).cluster


def test_of_a_model_the_batch_says_how_many_micro_batches() -> None:
    same = MODEL | {"batch": None, "microbatches": 4}
    assert plan_problem_from(MODEL) == plan_problem_from(same)


def _of_model(**keys: object) -> dict[str, Any]:
    return MODEL | {"model": MODEL["model"] | keys}


@pytest.mark.parametrize(
    ("document", "line"),
    [
        (PLAN | {"microbatches": 3}, "microbatches: found 3; allowed: what divides batch.size, 8"),
        (PLAN | {"microbatches": [4, 8]}, "microbatches: found [4, 8]; allowed: one here; solve, plan and sweep "),
        (PLAN | {"stage_overhead": {"forward": 1}}, "batch.overhead: found with stage_overhead; allowed: one of the"),
        (PLAN | {"batch": 8}, "batch: found 8; allowed: the keys size, overhead"),
        (MODEL | {"microbatches": 4}, "microbatches: found with model and batch; allowed: one of the two"),
        (MODEL | {"batch": {}}, "batch.size: missing; it is required with model"),
        (
            MODEL | {"batch": {"size": 32, "overhead": {"forward": 1}}},
            "batch.overhead: found with model; allowed: with layers",
        ),
        (_of_model(microbatch_size=3), "model.microbatch_size: found 3; allowed: what divides batch.size, 32, on 4 "),
        (_of_model(microbatch_size=[1, 2]), "model.microbatch_size: found [1, 2]; allowed: one here; solve, plan"),
    ],
)
def test_mistakes(document: dict[str, Any], line: str) -> None:
    with pytest.raises(BadInput) as refused:
        plan_problem_from(document)
    assert [mistake.startswith(f"plan: {line}") for mistake in refused.value.mistakes] == [True]


@pytest.mark.parametrize(
    ("document", "line"),
    [
        ({"microbatches": [4, 8]}, "microbatches: found a list without batch; allowed: with batch, or one number"),
        (PLAN | {"microbatches": [4, 4]}, "microbatches: found [4, 4]; allowed: a whole number of at least 1, or a"),
        (PLAN | {"microbatches": [0, 4]}, "microbatches: found [0, 4]; allowed: a whole number of at least 1, or a"),
        (PLAN | {"microbatches": []}, "microbatches: found []; allowed: a whole number of at least 1, or a list"),
        (
            _of_model(microbatch_size=[1, 2]) | {"microbatches": [2, 4]},
            "microbatches: found a list with a list of model.microbatch_size; allowed: one of the two",
        ),
    ],
)
def test_lists_that_are_none_of_sizes(document: dict[str, Any], line: str) -> None:
    with pytest.raises(BadInput, match="x: ") as refused:
        with_each_size(document, "x")
    assert [mistake.startswith(f"x: {line}") for mistake in refused.value.mistakes] == [True]


def test_each_size_of_a_model() -> None:
    each = with_each_size(_of_model(microbatch_size=[1, 2, 4]), "x")
    assert [one.sequences for one in each] == [1, 2, 4]
    assert [plan_problem_from(one.document).microbatches for one in each] == [8, 4, 2]


@pytest.mark.parametrize(("name", "plan"), [("eight-stages.yaml", False), ("llama3-70b.yaml", True)])
def test_examples(name: str, plan: bool) -> None:
    document: Any = read_yaml((EXAMPLES / name).read_text(), name)
    own = [one.document for one in with_each_size(document, name)]
    counts = [(plan_problem_from if plan else problem_from)(one).microbatches for one in own]
    assert counts == ([64, 32, 16] if plan else document["microbatches"])
    assert accepts(document, plan_schema if plan else problem_schema)


def test_a_list_of_sizes_is_an_axis_of_a_sweep() -> None:
    cells = sweep_of(_of_model(microbatch_size=[1, 2])).cells
    assert [(cell.place, cell.problem.microbatches) for cell in cells] == [
        ({"model.microbatch_size": 1}, 8),
        ({"model.microbatch_size": 2}, 4),
    ]
