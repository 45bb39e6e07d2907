"""The cells of a sweep: values and ranges, key paths, short names, the same model in other stages, what is refused."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from pipesched.errors import BadInput
from pipesched.files.exact_numbers import read_yaml
from pipesched.files.features.modules import REPLICATED, SHARED
from pipesched.files.plan_file import read_plan
from pipesched.files.problem_file import read_problem
from pipesched.layers.plan_problem import PlanProblem
from pipesched.problem.problem import Problem
from pipesched.sweeps.cells import Sweep, content_key
from pipesched.sweeps.same_model import uneven_stages
from tests.support.sweeps import TINY, sweep

EXAMPLES = Path(__file__).parents[3] / "examples"


def values(of: Sweep, axis: str) -> list[object]:
    return list(dict.fromkeys(cell.place[axis] for cell in of.cells))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("4..7", [4, 5, 6, 7]),
        ("4..9:2", [4, 6, 8]),
        ("0.5..1:0.25", [Decimal("0.5"), Decimal("0.75"), 1]),
        ("2..20:x3", [2, 6, 18]),
        ("1,3..4,8", [1, 3, 4, 8]),
        ("0.5p,2p", [1, 4]),
        ("1p..2p:0.5p", [2, 3, 4]),
        (".25", [Decimal("0.25")]),
    ],
)
def test_ranges_and_lists(text: str, expected: list[object]) -> None:
    found = values(sweep(f"memory={text}"), "memory")
    assert found == expected
    assert all(type(a) is type(b) for a, b in zip(found, expected, strict=True))  # 0.1 stays one tenth


@pytest.mark.parametrize(
    ("option", "said"),
    [
        ("memory=4..", "found '4..'"),
        ("memory=9..4", "the lesser first"),
        ("memory=4..9:0", "a step above 0"),
        ("memory=4..9:x1", "above 1 after x"),
        ("memory=1p..9", "after all of its numbers or none"),
        ("memory=1..1000000", "more than 10000 values"),
        ("memory=", "found no value"),
        ("memory=4,4", "appears twice"),
        ("memory", "allowed: FIELD=VALUES"),
        ("memory=[1", "not YAML"),
        ("memory..x=1", "found no key path"),
        ("times.forward[0]=3", "has no such part"),
        ("memroy.capacity=3", "did you mean 'memory'"),
        ("memory.capcity=3", "did you mean 'capacity'"),
    ],
)
def test_what_is_wrong_with_a_field_is_one_line(option: str, said: str) -> None:
    with pytest.raises(BadInput) as refused:
        sweep(option)
    assert len(refused.value.mistakes) == 1
    assert said in str(refused.value)


def test_a_product_of_axes_and_a_section_that_options_go_before() -> None:
    document = TINY | {"sweep": {"memory": [2, 3], "microbatches": "2..4"}}
    found = sweep("memory.capacity=5", "transfer=0,1", document=document)
    assert len(found.cells) == 1 * 3 * 2
    first, last = found.cells[0], found.cells[-1]
    assert last.place == {"memory.capacity": 5, "microbatches": 4, "transfer": 1}
    assert isinstance(last.problem, Problem) and isinstance(first.problem, Problem)
    assert (last.problem.microbatches, last.problem.stages[0].transfer * last.problem.tick) == (4, 1)
    assert "sweep" not in last.document


def test_groups_set_several_fields() -> None:
    groups = {"few": {"microbatches": 2, "memory": 1}, "many": {"microbatches": 9, "memory": "2p"}}
    found = sweep(document=TINY | {"sweep": {"load": groups}})
    assert [cell.place for cell in found.cells] == [{"load": "few"}, {"load": "many"}]
    problem = found.cells[1].problem
    assert isinstance(problem, Problem)
    assert (problem.microbatches, found.cells[1].capacities) == (9, (4, 4))


def test_multiples_follow_the_devices_of_the_cell() -> None:
    found = sweep("memory=1p", "devices=2,3")
    assert [cell.place["memory"] for cell in found.cells] == [2, 3]


def test_values_that_do_not_go_together_are_rows_with_a_reason() -> None:
    found = sweep("placement=linear,[0, 5]", "microbatches=2,0")
    assert [cell.refused.split(":")[0] for cell in found.cells] == ["", "microbatches", "placement[1]", "microbatches"]
    with pytest.raises(BadInput, match="microbatches: found 0"):
        sweep("microbatches=0")


def test_a_placement_takes_its_chunks_along() -> None:
    document = TINY | {"placement": "interleaved", "chunks": 3}
    found = sweep("placement=linear,interleaved x2,interleaved,v-shape", document=document)
    stages = [cell.problem.placement.stages for cell in found.cells if isinstance(cell.problem, Problem)]
    assert stages == [2, 4, 6, 4]


def stage_sums(problem: Problem, device: int) -> tuple[Fraction, ...]:
    """Work, activations and static memory of all that a device has of one chain."""
    chain = problem.placement.chains[0]
    held = [problem.stages[s] for s in chain if problem.placement.stage_device[s] == device]
    work = sum(s.forward + s.backward + (s.weight or 0) for s in held) * problem.tick
    return work, *(sum(x) * problem.resolution for x in ((s.activation for s in held), (s.freed for s in held)))


@pytest.mark.parametrize("placement", ["interleaved x2", "interleaved x3", "v-shape", "bidirectional", "wave x4"])
def test_the_same_model_has_the_same_costs_on_every_device(placement: str) -> None:
    memory = {"capacity": 400, "static": 36, "activation": 24, "freed_by_backward": 12}
    document = TINY | {"memory": memory, "times": {"forward": [12, 36], "backward": 24, "weight": 12, "transfer": 0.5}}
    cells = sweep(f"placement=linear,{placement}", document=document, same_model=True).cells
    one, other = (cell.problem for cell in cells)
    assert isinstance(one, Problem) and isinstance(other, Problem)
    chains = len(other.placement.chains)
    assert [held * other.resolution for held in other.static] == [36 * chains] * 2
    assert other.stages[0].transfer * other.tick == Fraction(1, 2)
    if placement.startswith("interleaved"):  # stages 0 .. of the first half are those of the first device
        assert sum(s.forward for s in other.stages) * other.tick == 48
    else:
        assert sum(stage_sums(other, d)[0] for d in (0, 1)) == sum(stage_sums(one, d)[0] for d in (0, 1))
    assert stage_sums(other, 0)[1:] == stage_sums(one, 0)[1:] == (24, 12)


def test_the_activation_that_a_file_leaves_out_is_divided_too() -> None:
    for memory in ({"capacity": 2}, {}):
        document = {key: value for key, value in TINY.items() if key != "memory"} | (
            {"memory": memory} if memory else {}
        )
        problem = sweep("placement=v-shape", document=document, same_model=True).cells[0].problem
        assert isinstance(problem, Problem)
        assert {s.activation * problem.resolution for s in problem.stages} == {Fraction(1, 2)}


def test_fewer_stages_add_up_and_back_again() -> None:
    document: dict[str, Any] = TINY | {
        "placement": "v-shape",
        "times": {"forward": [1, 2, 3, 4], "backward": 2},
        "memory": {"capacity": 9, "activation": [1, 1, 2, 2], "static": [1, 2, 3, 4]},
    }
    problem = sweep("placement=linear", document=document, same_model=True).cells[0].problem
    assert isinstance(problem, Problem)
    assert [s.forward * problem.tick for s in problem.stages] == [3, 7]
    assert [s.fused * problem.tick for s in problem.stages] == [4, 4]
    assert [s.activation * problem.resolution for s in problem.stages] == [2, 4]
    assert [held * problem.resolution for held in problem.static] == [3, 7]


PARAMETERS = {"reduce": {"time": [4, 8]}, "step": {"time": 2}, "gather": {"time": 6, "memory": 10}}


def test_the_same_model_has_the_same_parameters_and_frozen_layers_on_every_device() -> None:
    memory = {"activation": 8, "until_end": {"forward": [2, 4]}, "workspace": {"backward": [3, 5]}}
    document = TINY | {"objective": "iteration", "parameters": PARAMETERS, "frozen": 1, "memory": memory}
    problem = sweep("placement=interleaved x2", document=document, same_model=True).cells[0].problem
    assert isinstance(problem, Problem)
    once = [[one.task.ticks * one.parts * problem.tick for one in stage.once] for stage in problem.stages]
    assert once == [[0, 0], [0, 0], [4, 1], [4, 1]]  # frozen stages have neither
    assert [stage.gather and stage.gather.task.ticks * problem.tick for stage in problem.stages] == [3] * 4
    assert [stage.gather and stage.gather.memory * problem.resolution for stage in problem.stages] == [5] * 4
    assert [stage.until_end.forward * problem.resolution for stage in problem.stages] == [1, 1, 2, 2]
    assert [stage.workspace.backward * problem.resolution for stage in problem.stages][2:] == [5, 5]
    assert [stage.forward_only for stage in problem.stages] == [True, True, False, False]


def test_workspace_of_stages_that_become_one_is_the_larger_one() -> None:
    document = TINY | {"placement": "v-shape", "memory": {"workspace": {"forward": [1, 5, 2, 3]}}}
    problem = sweep("placement=linear", document=document, same_model=True).cells[0].problem
    assert isinstance(problem, Problem)
    assert [stage.workspace.forward * problem.resolution for stage in problem.stages] == [5, 3]


def test_the_same_model_in_pieces_and_in_units() -> None:
    times = {"forward": {"first": 4, "each_earlier": 2}, "backward": [[6, 8], [2, 4]]}
    document = TINY | {"sequence_chunks": 2, "times": times, "memory": {"kept_for_later": 2}}
    problem = sweep("placement=interleaved x2", document=document, same_model=True).cells[0].problem
    assert isinstance(problem, Problem)
    passes = [(stage.forward * problem.tick, stage.fused * problem.tick) for stage in problem.stages]
    assert sorted(passes) == [(2, 1), (2, 1), (2, 3), (2, 3), (3, 2), (3, 2), (3, 4), (3, 4)]
    assert {stage.kv_cache.taken * problem.resolution for stage in problem.stages} == {1}
    amounts = {"unit": "GiB", "activation": "4 GiB", "freed_by_backward": "25%"}
    modes = [{"name": "full", "time": "10 ms", "keeps": "1 GiB"}]
    document = TINY | {"time_unit": "ms", "times": {"forward": "2 s", "backward": 1, "weight": 1}}
    document |= {"memory": amounts | {"recompute": modes}}
    problem = sweep("placement=interleaved x2", document=document, same_model=True).cells[0].problem
    assert isinstance(problem, Problem)
    assert {stage.forward * problem.tick for stage in problem.stages} == {1000}
    halves = {(s.activation, s.freed, s.recompute[0].keeps, s.recompute[0].ticks) for s in problem.stages}
    step, tick = problem.resolution, problem.tick
    assert halves == {(2 / step, Fraction(1, 2) / step, Fraction(1, 2) / step, 5 / tick)}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            {"tasks": {"forward": [{"name": "a", "time": 1}], "backward": [{"name": "b", "time": 1}]}, "times": None},
            "tasks",
        ),
        ({"placement": [0, 1]}, "a list of devices"),
        ({"placement": "interleaved", "chunks": 3}, "a multiple or a divisor"),
        ({"placement": "wave", "chunks": 4, "frozen": 1}, "no whole number"),
        ({"modules": {"vision": {"placement": [0], "feeds": 1}}}, "within the model"),
    ],
)
def test_what_the_same_model_is_not_defined_for(change: dict[str, Any], said: str) -> None:
    with pytest.raises(BadInput, match=said):
        sweep("placement=interleaved x2", document=TINY | change, same_model=True)


def test_cells_of_one_content_share_a_key_and_capacities_a_family() -> None:
    cells = sweep("name=a,b", "memory=2,3,[2, 3]").cells
    assert cells[0].key == cells[3].key
    assert len({cell.key for cell in cells}) == 3
    assert len({cell.family for cell in cells}) == 1
    assert cells[2].capacities == (2, 3)
    assert len({cell.family for cell in sweep("transfer=0,1").cells}) == 2


KEYS = {
    "v-half-memory": "1846da88fdb05912",
    "own-placement": "90e321f584b15bc7",
    "dualpipe-blocks": "4140ceb15e98ef8c",
    "kimi-k2-offload-mini": "5633da4085a5b4f3",
    "lost-workers": "1d6085e646a9bcca",
    "sequence-chunks": "84d4f6c20c3d933a",
    "shared-vocabulary": "1644d1a7fc5fe56d",
    "gathered-weights": "ba61ae5c7c00c08b",
    "gradient-norm": "fd30726f1c4975a9",
    "unequal-microbatches": "b724516654c4ddd6",
    "workspace": "da7d6988c737251f",
    "modules/replicated": "b36f65bc6758c22b",
    "blocking-transfers": "fb6e02d53a1532a2",
    "plans/frozen-mtp": "ce8737f869ee89f2",
    "plans/clipped-gradients": "d5c18549d9bbcee2",
}


def test_keys_stay_as_they_are() -> None:
    """With other keys a store finds none of its results: a change of these asks for another `FORMAT` of the store."""
    for name, key in KEYS.items():
        read = read_plan if name.startswith("plans/") else read_problem
        assert content_key(read(EXAMPLES / f"{name}.yaml")).startswith(key), name


def test_a_plan_is_swept_by_its_own_fields() -> None:
    layers = [{"name": "a", "count": 4, "forward": 1, "backward": 2, "memory": 1, "activation": 1}]
    document = {"devices": 2, "microbatches": 2, "layers": layers, "memory": {"capacity": 9}}
    found = sweep("memory=8,9", "layers[0].forward=1,3", "recompute=never", document=document)
    assert found.of_plans
    problem = found.cells[-1].problem
    assert isinstance(problem, PlanProblem)
    assert (problem.cluster.capacity, problem.model.kinds[0].forward) == ((9, 9), 3)
    assert [cell.key for cell in found.cells[:2]] != [cell.key for cell in found.cells[2:]]


@pytest.mark.parametrize(
    ("forward", "heavy"),
    [(1, []), ([1, 1, 1, 1], []), ([1, 1, 1, 4], [3]), ([4, 1, 1, 4], [0, 3]), ([1, 1, 1, Fraction(5, 4)], [])],
)
def test_stages_that_equal_parts_would_cut_wrongly_are_named(forward: object, heavy: list[int]) -> None:
    document = {"devices": 4, "microbatches": 2, "times": {"forward": forward, "backward": forward}}
    assert uneven_stages(document) == heavy
    assert uneven_stages(document | {"placement": [0, 1, 2, 3]}) == []


@pytest.mark.parametrize(
    "change", [{"times": {"transfer": 1}}, {"sequence_chunks": 2, "times": {"forward": [1, 4], "backward": [1, 4]}}]
)
def test_no_stage_is_named_without_times_of_stages(change: dict[str, Any]) -> None:
    assert uneven_stages({"devices": 2, "microbatches": 2} | change) == []


@pytest.mark.parametrize("placement", [SHARED, REPLICATED])
def test_parts_of_a_module_on_all_devices_are_those_of_the_file_s_devices(placement: str) -> None:
    module = {"placement": placement, "feeds": 0, "times": {"forward": 1, "backward": 1, "weight": 1}}
    changes = ("placement=linear", "devices=4")
    document = TINY | {"devices": 2, "microbatches": 4, "placement": "v-shape", "modules": {"embedding": module}}
    if placement == REPLICATED:
        assert sweep(*changes, document=document, same_model=True).cells
    else:
        with pytest.raises(BadInput, match="with parts on all devices"):
            sweep(*changes, document=document, same_model=True)


def test_an_entry_of_a_table_with_numbers_as_keys_is_replaced() -> None:
    """YAML reads 4 as a number, a key path as text; both are the same entry."""
    model = {
        "layers": 4, "hidden": 1024, "vocabulary": 1000, "ffn": 4096, "sequence": 1024, "microbatch_size": 1,
        "attention": {"heads": 8}, "parallel": {"data": 32},
    }  # fmt: skip
    rates = {"sustained_tflops": 100, "memory": 80, "pipeline_bandwidth": 20, "node": 8}
    document = {"devices": 2, "microbatches": 4, "model": model, "hardware": rates}
    table = read_yaml("{1: 436, 4: 160}", "table")
    of_table = document | {"hardware": rates | {"data_bandwidth": table}}
    for found in (
        sweep("hardware.data_bandwidth.4=100,200", document=of_table),
        sweep("hardware.data_bandwidth={1: 436, 4: 160}", "hardware.data_bandwidth.4=100,200", document=document),
    ):
        assert [cell.refused for cell in found.cells] == ["", ""]
        problems = [cell.problem for cell in found.cells]
        assert [p.step.assumed["data_bandwidth"] for p in problems if isinstance(p, PlanProblem) and p.step] == [
            100,
            200,
        ]
        assert len({cell.family for cell in found.cells}) == 2


def test_modules_named_by_numbers_have_key_paths_too() -> None:
    entry = "{feeds: 0, times: {forward: 1, backward: 1, weight: 1}}"
    modules = read_yaml(f"{{1: {entry}, vision: {entry}}}", "modules")
    found = sweep("modules.1.times.forward=1,2", document=TINY | {"modules": modules})
    assert [cell.refused for cell in found.cells] == ["", ""]
    assert len({cell.family for cell in found.cells}) == len({cell.key for cell in found.cells}) == 2
