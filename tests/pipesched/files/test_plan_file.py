"""The plan file: what it holds, every mistake with its place, and the problem that a partition makes."""

import json
import re
from fractions import Fraction
from pathlib import Path

import pytest

from pipesched.errors import BadInput
from pipesched.files.batch_sizes import with_each_size
from pipesched.files.exact_numbers import read_json, read_yaml, write_json
from pipesched.files.plan_answers.problem_document import plan_document, plan_from_document
from pipesched.files.plan_file import plan_problem_from, read_plan
from pipesched.files.plans.schema import json_schema
from pipesched.files.problem_file import problem_from
from pipesched.files.problems.document import problem_document
from pipesched.layers.even import even_counts
from pipesched.layers.partition import Partition, Recomputed, mistakes
from pipesched.layers.plan_problem import Choice
from tests.support.editor import accepts
from tests.support.in_turn import in_turn

HEAD = {"name": "head", "forward": 2, "backward": 3, "weight": 1, "memory": 4, "activation": 1, "with_previous": True}
LAYER = {"name": "moe", "count": 4, "forward": 1, "backward": 1.5, "weight": 0.5, "memory": 10, "activation": 2}
LAYER |= {"freed_by_backward": 0.5, "recompute": [{"name": "full", "time": 1, "keeps": 0.25}]}
GOOD = {"devices": 2, "microbatches": 4, "layers": [LAYER, HEAD], "memory": {"capacity": 40}, "transfer": 0.25}


def mistakes_of(**changes):
    with pytest.raises(BadInput) as caught:
        plan_problem_from(GOOD | changes)
    return [mistake.split(":")[1].strip() for mistake in caught.value.mistakes]


def test_problem_of_a_partition_sums_its_layers():
    plan = plan_problem_from(GOOD | {"placement": "linear"})
    partition = Partition((2, 3), ((Recomputed("moe", "full", 1),), ()))
    problem = plan.problem(Choice("linear", 1), partition)
    t, step = plan.tick, plan.resolution
    first, second = problem.stages
    assert (first.forward * t, first.backward * t, first.weight * t, first.fused * t) == (2, 4, 1, 5)
    assert (second.forward * t, second.backward * t, second.weight * t) == (4, 6, 2)
    assert (first.static * step, second.static * step) == (20, 24)
    # The layer that is recomputed keeps a quarter of 2; while its W is to come it holds what the other does.
    assert (first.activation * step, first.freed * step) == (Fraction(5, 2), Fraction(-1, 2))
    assert (second.activation * step, second.freed * step) == (5, 1)
    assert problem.lag(0, 1) * t == Fraction(1, 4)
    assert [pool.capacity * step for pool in problem.pools] == [40, 40]


def test_a_layer_without_weight_is_not_split_beside_those_that_are():
    whole = {"name": "b", "forward": 1, "backward": 3, "activation": 2, "freed_by_backward": 1}
    plan = plan_problem_from(GOOD | {"placement": "linear", "layers": [LAYER, whole]})
    t, step = plan.tick, plan.resolution
    first, second = plan.problem(Choice("linear", 1), Partition((3, 2))).stages
    assert (first.backward * t, first.weight * t, first.freed * step) == (
        Fraction(9, 2),
        Fraction(3, 2),
        Fraction(3, 2),
    )
    assert (second.backward * t, second.weight * t, second.fused * t) == (Fraction(9, 2), Fraction(1, 2), 5)
    assert (second.activation * step, second.freed * step) == (4, Fraction(5, 2))  # b's own is given back when B ends


@in_turn(
    ("changes", "places"),
    [
        ({"devices": 0}, ["devices"]),
        ({"microbatches": None}, ["microbatches"]),
        ({"layers": []}, ["layers"]),
        ({"layers": [LAYER | {"forward": -1}]}, ["layers[0].forward"]),
        ({"layers": [{"name": "a"}]}, ["layers[0].forward", "layers[0].backward"]),
        ({"layers": [LAYER, LAYER | {"forward": 2}]}, ["layers[1].name"]),
        ({"layers": [LAYER, HEAD | {"with_previous": "yes"}]}, ["layers[1].with_previous"]),
        ({"layers": [HEAD, LAYER]}, ["layers[0].with_previous"]),
        ({"layers": [LAYER | {"freed_by_backward": 3}]}, ["layers[0].freed_by_backward"]),
        ({"layers": [LAYER | {"recompute": [{"name": "x"}]}]}, ["layers[0].recompute[0].time", "layers[0].recompute[0].keeps"]),
        ({"layers": [LAYER | {"recompute": [{"name": "x", "time": 1, "keeps": 2}]}]}, ["layers[0].recompute[0].keeps"]),
        ({"placement": ["linear", "line"]}, ["placement[1]"]),
        ({"placement": "linear", "chunks": 3}, ["chunks"]),
        ({"partition": [1, 1, 1]}, ["partition"]),
        ({"partition": [2, 2], "placement": "linear"}, ["partition"]),
        ({"partition": [4, 1], "placement": "linear"}, ["partition"]),
        ({"memory": {"capacity": [1, 2, 3]}}, ["memory.capacity"]),
        ({"transfer": [1, 2]}, ["transfer"]),
        ({"decide": {"recompute": "maybe"}}, ["decide.recompute"]),
        ({"objective": "fastest"}, ["objective"]),
        ({"sequence_chunks": {"count": [0, 2]}}, ["sequence_chunks"]),
        ({"sequence_chunks": {"count": 2, "lengths": "even"}}, ["sequence_chunks"]),
        ({"layers": [LAYER | {"attention": 1}]}, ["layers[0].attention"]),
        ({"layers": [LAYER | {"kept_for_later": 9}]}, ["layers[0].kept_for_later"]),
    ],
)  # fmt: skip
def test_every_mistake_names_its_place(changes, places):
    assert mistakes_of(**changes) == places


def test_layers_that_share_a_stage_stay_together():
    model = plan_problem_from(GOOD).model
    assert mistakes(model, Partition((4, 1)))
    assert not mistakes(model, Partition((3, 2)))
    assert even_counts(model, 2) == (2, 3)
    assert even_counts(model, 5) is None


def test_free_placement_lists_each_kind_once():
    free = plan_problem_from(GOOD | {"chunks": [1, 2]}).choices
    assert free == (Choice("linear", 1), Choice("interleaved", 2), Choice("v-shape", 2))
    assert plan_problem_from(GOOD | {"placement": "v-shape"}).choices == (Choice("v-shape", 2),)


ROOT = Path(__file__).resolve().parents[3]


def test_schema_for_editors_is_current():
    assert json.loads((ROOT / "docs" / "plan.schema.json").read_text()) == json_schema()


def test_editors_ask_for_devices_or_classes_of_them_and_for_layers_or_a_model():
    assert accepts(GOOD, json_schema)
    assert accepts({key: value for key, value in GOOD.items() if key != "microbatches"} | {"batch": {}}, json_schema)
    for key in ("devices", "microbatches", "layers"):
        assert not accepts({other: value for other, value in GOOD.items() if other != key}, json_schema)


def test_examples_and_the_documented_file_are_read():
    for path in sorted((ROOT / "examples" / "plans").glob("*.yaml")):
        assert read_plan(path).model.most_stages >= read_plan(path).cluster.devices
        assert accepts(read_yaml(path.read_text(), path.name), json_schema)
    blocks = re.findall(r"```yaml\n(.*?)```", (ROOT / "docs" / "plans.md").read_text(), re.DOTALL)
    documented, pieces, batch, frozen, overlapped, own, classes, encoder = blocks
    assert len(plan_problem_from(read_yaml(documented, "docs")).model.sequence) == 63
    (first, *_) = with_each_size({"devices": 4} | read_yaml(batch, "docs"), "docs")
    assert plan_problem_from(first.document).model.layers[0].forward == 5
    cut = plan_problem_from({"devices": 4, "microbatches": 4} | read_yaml(pieces, "docs")).choices
    assert {choice.cut.number for choice in cut} == {1, 2, 4, 8}
    assert plan_problem_from({"devices": 4, "microbatches": 4} | read_yaml(own, "docs")).model.parameters.some
    assert plan_problem_from({"devices": 4, "microbatches": 4} | read_yaml(frozen, "docs")).model.before_training == 62
    together = plan_problem_from(
        {"devices": 4, "microbatches": 4, "placement": "linear"} | read_yaml(overlapped, "docs")
    )
    assert together.model.layers[0].overlapped == Fraction(22, 5)
    others = {"microbatches": 4, "layers": [LAYER | {"count": 16}], "memory": {"unit": "GB"}}
    assert plan_problem_from(others | read_yaml(classes, "docs")).cluster.slowness[7:9] == (1, Fraction(5, 3))
    assert len(plan_problem_from({"devices": 2} | others | read_yaml(encoder, "docs")).variants) == 4


def test_the_problem_of_a_plan_with_transfers_on_a_stream_is_a_file():
    """Its schedule.json and plan.json could not be read: no stream of that name was listed."""
    layer = {"forward": 1, "backward": 2}
    plan = plan_problem_from({
        "devices": 2, "microbatches": 2, "placement": "linear", "chunks": 1, "transfer": {"time": 1, "on": "comm"},
        "layers": [layer | {"name": "a"}, layer | {"name": "b"}],
    })  # fmt: skip
    one = plan.problem(plan.choices[0], Partition((1, 1)))
    assert problem_from(problem_document(one)) == one


def _attention(forward: float) -> dict[str, object]:
    """Two layers cut into pieces, whose measured times are rounded."""
    layers = [
        {
            "name": "a",
            "forward": forward,
            "backward": 2.849551758707126,
            "activation": 0.9510198453293432,
            "attention": 0.5,
        },
        {"name": "b", "forward": 1.0, "backward": 3.8195670218928135, "activation": 1, "attention": 0.25},
    ]
    return {"devices": 2, "microbatches": 2, "placement": "linear", "layers": layers, "sequence_chunks": [1, 2]}


def test_rounded_costs_of_pieces_are_the_same_in_a_plan_that_is_written_and_read_back() -> None:
    plan = plan_problem_from(_attention(2.8639503238473196))
    again = plan_from_document(read_json(write_json(plan_document(plan)), ""), "")
    assert (again.tick, again.resolution) == (plan.tick, plan.resolution)
    (*_, choice), partition = plan.choices, Partition((1, 1))
    assert choice.cut.number == 2
    assert problem_document(again.problem(choice, partition)) == problem_document(plan.problem(choice, partition))


@pytest.mark.parametrize(
    "steps", [{"time": "2", "memory": "1/8"}, {"time": "1/8", "memory": "2"}, {"time": "0", "memory": "1"}]
)
def test_steps_that_change_the_numbers_of_a_plan_are_refused(steps: dict[str, str]) -> None:
    document = plan_document(plan_problem_from(_attention(3)))
    with pytest.raises(BadInput, match="steps: found"):
        plan_from_document(read_json(write_json(document | {"steps": steps}), ""), "")
