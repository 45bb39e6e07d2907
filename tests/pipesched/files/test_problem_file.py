"""The problem file: what is read, exactly; and each mistake's own line."""

from __future__ import annotations

import re
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import pytest
import yaml

from pipesched.errors import BadInput
from pipesched.files.exact_numbers import read_yaml
from pipesched.files.problem_file import problem_from, read_problem, with_objective
from pipesched.files.problems.document import problem_document
from pipesched.files.problems.schema import json_schema
from pipesched.problem.problem import Objective, Problem
from pipesched.sweeps.cells import content_key
from tests.support.columns import costs_of
from tests.support.editor import accepts
from tests.support.in_turn import in_turn
from tests.support.makers import problem

GOOD = {"devices": 2, "microbatches": 3, "times": {"forward": 1, "backward": 1}}


def read(text: str, folder: Path, name: str = "small.yaml") -> Problem:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return read_problem(path)


def mistakes(text: str, folder: Path, name: str = "small.yaml") -> list[str]:
    """The mistakes without the file's name, with which each begins."""
    with pytest.raises(BadInput) as caught:
        read(text, folder, name)
    source = f"{folder / name}: "
    assert all(line.startswith(source) and "\n" not in line for line in caught.value.mistakes)
    return [line.removeprefix(source) for line in caught.value.mistakes]


def document(times: str = "", memory: str = "", **keys: str) -> str:
    """The text of a right file, with some values replaced; an empty text leaves a key out."""
    lines = {"devices": "2", "microbatches": "3", "times": "{forward: 1, backward: 1}"} | keys
    if times:
        lines["times"] = f"{{forward: 1, backward: 1, {times}}}"
    if memory:
        lines["memory"] = f"{{{memory}}}"
    return "".join(f"{key}: {value}\n" for key, value in lines.items() if value)


KEYS = "name, devices, microbatches, placement, chunks, chains, time_unit, streams, tasks, times, memory, objective, sweep, batch, frozen, microbatch_scale, microbatch_order, modules, parameters, overlap_next, pipelines, sequence_chunks, then"
TIMES_KEYS = "forward, backward, weight, fused, transfer, overlapped"
# The entry and what was found there; how it is said is held in tests/messages.
ONE_MISTAKE = {
    "misspelt key": (document(microbatch="4"), "microbatch: unknown key"),
    "unknown key": (document(zzz="4"), "zzz: unknown key"),
    "misspelt key in times": (document("wieght: 1"), "times.wieght: unknown key"),
    "unknown key in memory": (document(memory="capacities: 4"), "memory.capacities: unknown key"),
    "key that is a number": (document() + "3: 4\n", "3: unknown key"),
    "key that YAML takes for true": (document() + "true: 4\n", "true: unknown key"),
    "key that YAML takes for nothing": (document() + "~: 4\n", "nothing: unknown key"),
    "no devices": (document(devices=""), "devices: missing"),
    "empty devices": (document(devices="~"), "devices: missing"),
    "no microbatches": (document(microbatches=""), "microbatches: missing"),
    "no times": (document(times="") .replace("times: {forward: 1, backward: 1}\n", ""), "times: missing"),
    "empty times": (document().replace("{forward: 1, backward: 1}", ""), "times: missing"),
    "no forward": (document().replace("forward: 1, ", ""), "times.forward: missing"),
    "empty forward": (document().replace("forward: 1", "forward: "), "times.forward: missing"),
    "no backward": (document().replace(", backward: 1", ""), "times.backward: missing"),
    "devices as text": (document(devices="two"), "devices: found 'two'"),
    "no device": (document(devices="0"), "devices: found 0"),
    "half a device": (document(devices="1.5"), "devices: found 1.5"),
    "devices true": (document(devices="true"), "devices: found true"),
    "negative microbatches": (document(microbatches="-1"), "microbatches: found -1"),
    "huge microbatches": (document(microbatches="10000000000000"), "microbatches: found 10000000000000"),
    "times as a number": (document().replace("{forward: 1, backward: 1}", "5"), "times: found 5"),
    "memory as a list": (document() + "memory: [1, 2]\n", "memory: found [1, 2]"),
    "time as text": (document("weight: fast"), "times.weight: found 'fast'"),
    "time true": (document("weight: true"), "times.weight: found true"),
    "time as keys": (document("weight: {a: 1, b: 2}"), "times.weight: found keys a, b"),
    "negative time": (document("weight: -0.5"), "times.weight: found -0.5"),
    "negative time in a list": (document("weight: [1, -1]"), "times.weight[1]: found -1"),
    "no time in a list": (document("weight: []"), "times.weight: found []"),
    "list in a list": (document("weight: [[1], 1]"), "times.weight[0]: found [1]"),
    "infinite": (document("weight: .inf"), "times.weight: found inf"),
    "not a number": (document("weight: .nan"), "times.weight: found nan"),
    "huge": (document("weight: 1000000000001"), "times.weight: found 1000000000001"),
    "huge power": (document("weight: 1e400"), "times.weight: found 1E+400"),
    "power beyond all": (document("weight: 1e99999999999999999999"), "times.weight: found inf"),
    "tiny power": (document("weight: 1e-31"), "times.weight: found 1E-31"),
    "too many digits": (document(f"weight: 1.{'0' * 100}1"), "times.weight: found 1.0000000000000000000000000000000000000000000000000000000..."),
    "long list is cut": (
        document(placement=f"[{', '.join(['a'] * 40)}]"),
        "placement: found ['a', 'a', 'a', 'a', 'a', 'a', 'a', 'a', 'a', 'a', 'a', '...",
    ),
    "transfer": (document("transfer: -1"), "times.transfer: found -1"),
    "links": (document("transfer: [[0, 1], [2, -1]]"), "times.transfer[1][1]: found -1"),
    "rows": (document("transfer: [[0, 1]]"), "times.transfer: found 1 rows of 2 values"),
    "nodes": (document("transfer: {intra_node: 1, inter_node: 2, nodes: [0]}"), "times.transfer.nodes: found 1 nodes"),
    "intra": (
        document("transfer: {intra_node: -1, inter_node: 2, nodes: [0, 1]}"), "times.transfer.intra_node: found -1"
    ),
    "no node": (
        document("transfer: {intra_node: 1, inter_node: 2, nodes: [0, 0.5]}"), "times.transfer.nodes[1]: found 0.5"
    ),
    "node": (document("transfer: {intra_node: 1, nodes: [0, 1]}"), "times.transfer.inter_node: found nothing"),
    "transfer on no stream": (document("transfer: {time: 1}"), "times.transfer.on: found nothing"),
    "transfer and more": (document("transfer: {time: 1, on: compute, of: x}"), "times.transfer.of: found 'x'"),
    "overlapped": (document("overlapped: x"), "times.overlapped: found 'x'"),
    "capacity": (document(memory="capacity: -1"), "memory.capacity: found -1"),
    "freed": (document(memory="freed_by_backward: x"), "memory.freed_by_backward: found 'x'"),
    "unit": (document(memory="unit: 3"), "memory.unit: found 3"),
    "name": (document(name="3"), "name: found 3"),
    "time unit": (document(time_unit="[a]"), "time_unit: found ['a']"),
    "objective": (document(objective="spam"), "objective: found 'spam'"),
    "placement": (document(placement="v-shap"), "placement: found 'v-shap'"),
    "placement of no stages": (document(placement="[]"), "placement: found []"),
    "placement of text": (document(placement="[0, a]"), "placement: found [0, 'a']"),
    "placement on a negative device": (document(placement="[0, -1]"), "placement: found [0, -1]"),
    "placement out of range": (document(placement="[0, 1, 2]"), "placement[2]: found device 2"),
    "placement without a device": (
        document(devices="4", placement="[0, 2]"),
        "placement: found no stage on device 1, 3",
    ),
    "placement without most devices": (
        document(devices="400000", placement="[0, 2]"),
        "placement: found no stage on device 1, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, ...; "
        "allowed: at least one stage on each of the 400000 devices",
    ),
    "chunks of linear": (document(chunks="2"), "chunks: found 2"),
    "chunks of v-shape": (document(chunks="1", placement="v-shape"), "chunks: found 1"),
    "chunks of bidirectional": (document(chunks="3", placement="bidirectional"), "chunks: found 3"),
    "chunks of a list": (document(chunks="1", placement="[0, 1]"), "chunks: found 1"),
    "length": (document("weight: [1, 2, 3]"), "times.weight: found 3 values"),
    "length with chunks": (
        document("weight: [1, 2]", placement="interleaved", chunks="2"),
        "times.weight: found 2 values",
    ),
    "length with a list": (document("weight: [1, 2]", placement="[0, 1, 0]"), "times.weight: found 2 values"),
    "length of both directions": (
        document("transfer: [1, 2, 3]", placement="bidirectional"),
        "times.transfer: found 3 values",
    ),
    "length of activation": (document(memory="activation: [1]"), "memory.activation: found 1 values"),
    "length of freed": (document(memory="freed_by_backward: [0, 0, 0]"), "memory.freed_by_backward: found 3 values"),
    "length of capacity": (document(memory="capacity: [4]"), "memory.capacity: found 1 values"),
    "fused without weight": (document("fused: 2"), "times.fused: found without times.weight"),
    "fused with an empty weight": (document("fused: 2, weight: "), "times.fused: found without times.weight"),
    "freed above the activation": (
        document(memory="activation: 1.5, freed_by_backward: 1.6"),
        "memory.freed_by_backward: found 1.6 activations",
    ),
    "freed above the default activation": (
        document(memory="freed_by_backward: 2"), "memory.freed_by_backward: found 2 activations"
    ),
    "freed above one activation": (
        document(memory="activation: [1, 2], freed_by_backward: [1, 3]"),
        "memory.freed_by_backward[1]: found 3 activations",
    ),
    "freed above one of the activations": (
        document(memory="activation: [1, 2], freed_by_backward: 1.5"),
        "memory.freed_by_backward[0]: found 1.5 activations",
    ),
    "not a mapping": ("hello\n", "found 'hello'"),
    "a list": ("- 1\n- 2\n", "found [1, 2]"),
    "an empty file": ("", "the file is empty"),
    "YAML syntax": ("devices: 2\ntimes: {forward: 1\n", "line 3, column 1: not YAML"),
    "a tab": ("devices:\n\t- b\n", "line 2, column 1: not YAML"),
    "key twice": (document() + "devices: 3\n", "line 4, column 1: not YAML"),
    "key twice in a section": (document("forward: 3"), "line 3, column 34: not YAML"),
    "a list as a key": (document() + "? [a, b]\n: 3\n", "line 4, column 3: not YAML"),
    "a Python object": ("a: !!python/object:os.system x\n", "line 1, column 4: not YAML"),
    "a control character": ("a: \x01\n", "not YAML"),
    "a day that is not": (document(name="2024-99-99"), "cannot be read"),
}  # fmt: skip


@pytest.mark.parametrize(("text", "line"), ONE_MISTAKE.values(), ids=ONE_MISTAKE)
def test_each_mistake_has_its_line(text: str, line: str, tmp_path: Path) -> None:
    (said,) = mistakes(text, tmp_path)
    assert re.match(rf"{re.escape(line)}([;:]|$)", said)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("{\n\n,}", "line 3, column 1: not JSON"),
        ('{"devices": NaN}', "line 1, column 13: not JSON"),
        ('{"devices": 2, "devices": 3}', "the key 'devices' appears twice"),
        ("[]", "found []"),
    ],
)
def test_mistakes_of_json(text: str, line: str, tmp_path: Path) -> None:
    (said,) = mistakes(text, tmp_path, "small.json")
    assert re.match(rf"{re.escape(line)}([;:]|$)", said)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"nowhere\.yaml: no such file$"):
        read_problem(tmp_path / "nowhere.yaml")
    with pytest.raises(BadInput, match=": found a folder; allowed: a file"):
        read_problem(tmp_path)
    (tmp_path / "latin.yaml").write_bytes(b"name: \xe9\n")
    with pytest.raises(BadInput, match=r"latin\.yaml: cannot be read: "):
        read_problem(tmp_path / "latin.yaml")


def test_all_mistakes_are_told_at_once(tmp_path: Path) -> None:
    text = """
devices: 2
microbatchs: 4
placement: [0, 3]
chunks: 2
times: {forward: [1, 2, 3], weight: -1, fused: 2}
memory: {capacity: -1, freed_by_backward: 2, unit: 1}
objective: speed
"""
    assert sorted(line.split(":")[0] for line in mistakes(text, tmp_path)) == [
        "chunks", "memory.capacity", "memory.freed_by_backward", "memory.unit", "microbatches", "microbatchs",
        "objective", "placement", "placement[1]", "times.backward", "times.forward", "times.weight",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "key"),
    [
        (document("weight: x, fused: 2"), "times.weight"),
        (document("weight: [1, 1, 1, 1]", placement="v-shap"), "placement"),
        (document("weight: [1, 1, 1, 1]", placement="interleaved", chunks="two"), "chunks"),
        (document(placement="interleavd", chunks="2"), "placement"),
        (document("weight: [1, 1, 1]", devices="x"), "devices"),
        (document(memory="activation: x, freed_by_backward: 0.75"), "memory.activation"),
    ],
)
def test_a_wrong_key_is_no_ground_for_other_mistakes(text: str, key: str, tmp_path: Path) -> None:
    assert [line.split(":")[0] for line in mistakes(text, tmp_path)] == [key]


# What is read.


def times(text: str, folder: Path) -> tuple[Fraction, tuple[int, ...]]:
    one = read(document().replace("forward: 1", f"forward: {text}"), folder)
    return one.tick, costs_of(one).forward


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0.1", Fraction(1, 10)),
        ("18.522", Fraction(18522, 1000)),
        ("1e-3", Fraction(1, 1000)),
        ("1e3", Fraction(1000)),
        ("1.5e3", Fraction(1500)),
        (".5e1", Fraction(5)),
        ("1.5E-3", Fraction(3, 2000)),
        ("5.", Fraction(5)),
        (".5", Fraction(1, 2)),
        ("1_000.5", Fraction(2001, 2)),
        ("1.000000000000000000", Fraction(1)),
        ("0.000000000000001", Fraction(1, 10**15)),
        ("1000000000000", Fraction(10**12)),
        ("0e-99999999", Fraction(0)),
        ("0", Fraction(0)),
    ],
)
def test_decimals_are_exact(text: str, value: Fraction, tmp_path: Path) -> None:
    tick, forward = times(text, tmp_path)
    assert [tick * ticks for ticks in forward] == [value, value]
    assert all(type(ticks) is int for ticks in forward)


@pytest.mark.parametrize(
    ("numbers", "tick", "ticks"),
    [
        (("0.1", "0.2"), Fraction(1, 10), (1, 2)),
        (("4", "6"), Fraction(2), (2, 3)),
        (("1.5", "0.25"), Fraction(1, 4), (6, 1)),
        (("0.3", "0.45"), Fraction(3, 20), (2, 3)),
        (("0", "0"), Fraction(1), (0, 0)),
        (("0", "7"), Fraction(7), (0, 1)),
    ],
)
def test_the_tick_is_the_greatest_common_step(
    numbers: tuple[str, str], tick: Fraction, ticks: tuple[int, int], tmp_path: Path
) -> None:
    one = read(document().replace("forward: 1, backward: 1", "forward: {}, backward: {}".format(*numbers)), tmp_path)
    assert (one.tick, one.stages[0].forward, one.stages[0].backward) == (tick, *ticks)


@pytest.mark.parametrize("key", ["weight", "fused", "transfer", "overlapped"])
def test_every_time_counts_for_the_tick(key: str) -> None:
    given = {"forward": 1, "backward": 1, "weight": 1, "fused": 2, key: Decimal("0.3")}
    assert problem(1, 1, times=given).tick == Fraction(1, 10)


def test_defaults(tmp_path: Path) -> None:
    one = read(document(), tmp_path, "my-run.yaml")
    assert (one.name, one.objective, one.time_unit) == ("my-run", Objective.MAKESPAN, "")
    assert (one.placement.name, one.placement.stages, one.microbatches) == ("linear", 2, 3)
    assert (costs_of(one).weight, costs_of(one).transfer, costs_of(one).overlapped) == (None, (0, 0), None)
    assert costs_of(one).fused == costs_of(one).backward == (1, 1)
    assert not one.splittable
    assert one.memory_unit == "activations"
    assert {(stage.activation, stage.freed) for stage in one.stages} == {(1, 0)}
    assert (one.room, one.resolution) == ((None, None), 1)


LINKS = ["[[0, 1], [2.5, 0]]", "{intra_node: 1, inter_node: 2.5, nodes: [3, 4]}"]


@pytest.mark.parametrize("transfer", LINKS, ids=["matrix", "nodes"])
def test_transfers_by_pair_of_devices(transfer: str, tmp_path: Path) -> None:
    one = read(document(f"transfer: {transfer}"), tmp_path)
    assert [one.lag(0, 1) * one.tick, one.lag(1, 0) * one.tick] == [2.5 if "node" in transfer else 1, 2.5]
    assert problem_from(problem_document(one), "again") == one


def test_a_time_from_a_device_to_itself_is_noted(tmp_path: Path) -> None:
    one, same = (read(document(f"transfer: [[{own}, 1], [2.5, 0]]"), tmp_path) for own in (0.5, 0))
    assert [len(problem.notes) for problem in (one, same)] == [1, 0] and "times.transfer" in one.notes[0]
    assert one.lag(0, 1) * one.tick == same.lag(0, 1) * same.tick == 1


def test_problems_are_hashable_and_alike_whatever_they_are_called(tmp_path: Path) -> None:
    one, same = (read(document(name=name), tmp_path) for name in ("one", "other"))
    longer = read(document("weight: 2"), tmp_path)
    assert len({one, same, longer}) == 3
    assert content_key(one) == content_key(same) != content_key(longer)
    assert content_key(one) != content_key(replace(one, objective=Objective.SPAN))


def test_empty_optional_values_are_left_out(tmp_path: Path) -> None:
    assert read(document("weight: ", name="~", memory="capacity: "), tmp_path) == read(document(), tmp_path)


def test_everything_said(tmp_path: Path) -> None:
    one = read(
        """
name: gpt
devices: 2
microbatches: 24
placement: linear
chunks: 1
time_unit: ms
times: {forward: [1, 2], backward: 2, weight: [0.5, 1], fused: 2.5, transfer: 0.25, overlapped: [4, 5]}
memory: {unit: GiB, capacity: [8, 7.5], activation: [1, 2], freed_by_backward: [0.25, -1]}
objective: span
""",
        tmp_path,
    )
    assert (one.name, one.time_unit, one.objective, one.tick) == ("gpt", "ms", Objective.SPAN, Fraction(1, 4))
    costs = costs_of(one)
    assert (costs.forward, costs.backward, costs.weight) == ((4, 8), (8, 8), (2, 4))
    assert (costs.fused, costs.transfer, costs.overlapped) == ((10, 10), (1, 1), (16, 20))
    assert (one.memory_unit, one.resolution, one.room) == ("GiB", Fraction(1, 4), (32, 30))
    assert [(stage.activation, stage.freed) for stage in one.stages] == [(4, 1), (8, -4)]
    assert with_objective(one, Objective.MAKESPAN).objective == Objective.MAKESPAN


def test_lists_of_a_bidirectional_placement() -> None:
    half = problem(2, 2, placement="bidirectional", times={"forward": [1, 2], "backward": 1, "transfer": [3, 4]})
    assert costs_of(half).forward == (1, 2, 1, 2)
    assert costs_of(half).transfer == (3, 4, 3, 4)
    whole = problem(2, 2, placement="bidirectional", times={"forward": [1, 2, 3, 4], "backward": 1})
    assert costs_of(whole).forward == (1, 2, 3, 4)
    assert problem(2, 2, placement="bidirectional", memory={"activation": [1, 2]}).network.memory_in_flight == (
        1,
        2,
        1,
        2,
    )


def test_room_for_exactly_one_activation_is_enough() -> None:
    memory = {"capacity": 3, "activation": [1, 3], "freed_by_backward": [1, 3]}
    assert problem(2, 1, memory=memory).room == (3, 3)


def test_python_floats_mean_what_they_print() -> None:
    assert problem(1, 1, times={"forward": 0.1, "backward": Fraction(1, 2)}).tick == Fraction(1, 10)
    with pytest.raises(BadInput, match=r"times\.forward: found nan; allowed"):
        problem(1, 1, times={"forward": float("nan"), "backward": 1})


# The older visualiser's form.

OLD_JSON = """{"num_stages": 6, "num_batches": 12, "forward_times": [0.8, 1.0, 1.2, 1.0, 0.9, 1.1],
"backward_times": [1.6, 2.0, 2.4, 2.0, 1.8, 2.2], "output_file": "pipeline_1f1b_custom.png"}"""
OLD_YAML = """
# Pipeline Parallelism Configuration
num_stages: 5
num_batches: 8
forward_times:
  - 0.9
  - 1.1
  - 1.0
  - 0.8
  - 1.2
backward_times: 2
p2p_time: 0.05
output_file: "pipeline_1f1b_yaml.png"
"""


def test_the_older_form(tmp_path: Path) -> None:
    one = read(OLD_JSON, tmp_path, "sample_config.json")
    assert (one.name, one.devices, one.microbatches, one.tick) == ("sample_config", 6, 12, Fraction(1, 10))
    assert (costs_of(one).forward, costs_of(one).fused) == ((8, 10, 12, 10, 9, 11), (16, 20, 24, 20, 18, 22))
    assert not one.splittable
    other = read(OLD_YAML, tmp_path)
    assert (other.tick, costs_of(other).forward) == (Fraction(1, 20), (18, 22, 20, 16, 24))
    assert (costs_of(other).fused, costs_of(other).transfer) == ((40,) * 5, (1,) * 5)


@pytest.mark.parametrize("more", ["", "forward_times:\nbackward_times:\np2p_time:\n"], ids=["absent", "empty"])
def test_defaults_of_the_older_form(more: str, tmp_path: Path) -> None:
    one = read("num_stages: 2\nnum_batches: 3\n" + more, tmp_path)
    assert (costs_of(one).forward, costs_of(one).fused, costs_of(one).transfer) == ((1, 1), (2, 2), (0, 0))


OLD_MISTAKES = {
    "num_stages: 2": ["num_batches: missing"],
    "num_batches: 2": ["num_stages: missing"],
    "num_stages: 0\nnum_batches: 2": ["num_stages: found 0"],
    "num_stages: 2\nnum_batches: 2\nforward_time: 1": ["forward_time: unknown key"],
    "num_stages: 2\nnum_batches: 2\ndevices: 1": ["devices: unknown key"],
    "num_stages: 2\nnum_batches: 2\nforward_times: [1]\nbackward_times: [1, 2, 3]": [
        "forward_times: found 1 values",
        "backward_times: found 3 values",
    ],
    "num_stages: 2\nnum_batches: 2\np2p_time: [1, 2]": ["p2p_time: found [1, 2]"],
    "num_stages: 2\nnum_batches: 2\noutput_file: 3": ["output_file: found 3"],
}


@pytest.mark.parametrize("text", OLD_MISTAKES)
def test_mistakes_of_the_older_form(text: str, tmp_path: Path) -> None:
    assert [line.split(";")[0] for line in mistakes(text, tmp_path)] == OLD_MISTAKES[text]


# The schema for editors.


FULL = """
name: gpt
devices: 2
microbatches: 24
placement: [0, 1, 1]
time_unit: ms
times: {forward: [1, 2, 3], backward: 2, weight: 0.5, fused: 2.5, transfer: 0.25, overlapped: 4}
memory: {unit: GiB, capacity: [8, 7.5], activation: 1, freed_by_backward: -1}
objective: period
"""


@pytest.mark.parametrize("text", [FULL, document(), document(placement="wave", chunks="3"), document("weight: 1e-3")])
def test_the_schema_accepts_what_is_right(text: str, tmp_path: Path) -> None:
    read(text, tmp_path)
    assert accepts(read_yaml(text, "test"))


BEYOND_A_SCHEMA = (
    "placement o", "placement w", "chunks", "length", "fused", "freed above", "capacity ", "too many", "far too many",
    "tiny", "huge micro", "YAML", "a tab", "key t", "a list as", "a Python", "a control", "a day", "infinite",
    "not a n", "rows", "nodes", "power", "huge power", "key that", "list in",
)  # fmt: skip
FOR_A_SCHEMA = {
    name: text
    for name, (text, _) in ONE_MISTAKE.items()
    if not name.startswith(BEYOND_A_SCHEMA) or name in ("placement of text", "placement of no stages")
}


@in_turn("text", FOR_A_SCHEMA.values(), ids=FOR_A_SCHEMA)
def test_the_schema_rejects_what_is_wrong(text: str) -> None:
    assert not accepts(read_yaml(text, "test"))


def test_the_schema_accepts_the_examples() -> None:
    examples = Path(__file__).resolve().parents[3] / "examples"
    found = [*examples.glob("*.yaml"), *examples.glob("long/*.yaml")]
    assert len(found) > 20
    assert [path.name for path in found if not accepts(read_yaml(path.read_text(), path.name))] == []


def test_the_schema_tells_every_key_with_a_description() -> None:
    schema = json_schema()
    assert list(schema["properties"]) == KEYS.split(", ")
    assert list(schema["$defs"]["Times"]["properties"]) == TIMES_KEYS.split(", ")
    sections = [schema, *schema["$defs"].values()]
    undescribed = [key for s in sections for key, value in s["properties"].items() if "description" not in value]
    assert {*undescribed} == {"tasks", "times", "memory"}  # sections, of a module too


def test_problem_from_names_its_source() -> None:
    with pytest.raises(BadInput, match=r"^here: devices: missing"):
        problem_from({key: value for key, value in GOOD.items() if key != "devices"}, "here")


def test_a_document_is_not_changed_by_reading_it() -> None:
    wrong = {**GOOD, "times": {"forward": "x", "backward": 1}, "more": 1}
    before = yaml.safe_dump(wrong)
    with pytest.raises(BadInput):
        problem_from(wrong, "here")
    assert yaml.safe_dump(wrong) == before


def test_a_slip_of_the_keyboard_does_not_fill_the_memory() -> None:
    with pytest.raises(BadInput, match="found 999999999 on 2 stages"):
        problem_from({"devices": 2, "microbatches": 999999999, "times": {"forward": 1, "backward": 1}}, "x")


@pytest.mark.parametrize("text", ["010", "1:30", "0x10"])
def test_what_yaml_would_reinterpret_is_refused(text: str, tmp_path: Path) -> None:
    path = tmp_path / "odd.yaml"
    path.write_text(f"devices: {text}\nmicrobatches: 2\ntimes: {{forward: 1, backward: 1}}\n")
    with pytest.raises(BadInput, match=r"devices: found .*"):
        read_problem(path)


LOST = {
    "devices": 2,
    "microbatches": 2,
    "pipelines": {"count": 2, "lost": [[1, 1]]},
    "times": {"forward": 2, "backward": 3},
    "parameters": {"gather": {"time": 1, "most": 3}, "reduce": {"time": 3, "buckets": 2}, "step": {"time": 1}},
    "objective": "iteration",
}


def test_a_problem_with_a_lost_worker_says_who_holds_the_parameters_and_is_read_back() -> None:
    """Stage 3 is the second stage of the pipeline that lost its worker; the worker of the other one holds it too."""
    one = problem_from(LOST)
    document = problem_document(one)
    assert document["placement"] == [0, 1, 2, 1]
    assert document["parameters"]["holders"] == [0, 1, 2, 1]
    again = problem_from(document)
    assert again.parameters.holders == one.parameters.holders == (0, 1, 2, 1)
    most = [stage.gather.most for stage in again.stages if stage.gather]
    assert (most, again.parameters.most) == ([1, 1, 1], 3)
    once = [(stage.gather is None, stage.once) for stage in one.stages]
    assert [(stage.gather is None, stage.once) for stage in again.stages] == once
    assert problem_document(again) == document


@pytest.mark.parametrize(
    ("holders", "line"),
    [
        ([0, 1, 2], "found [0, 1, 2]; allowed: 4 stages of 0 to 3"),
        ([0, 1, 2, 4], "found [0, 1, 2, 4]; allowed: 4 stages of 0 to 3"),
        ([0, 1, 2, 0], "found 0 for stage 3; allowed: 1, holders on its device"),
        ([0, 3, 2, 1], "found 3 for stage 1; allowed: 1, holders on its device"),
        ("all", "found 'all'; allowed: a list of stages"),
    ],
)
def test_a_stage_whose_parameters_another_holds_shares_a_device_with_it(holders: object, line: str) -> None:
    document = problem_document(problem_from(LOST))
    document["parameters"]["holders"] = holders
    with pytest.raises(BadInput) as caught:
        problem_from(document)
    assert f"problem: parameters.holders: {line}" in caught.value.mistakes


def test_holders_are_of_chains() -> None:
    with pytest.raises(BadInput, match=r"parameters.holders: found without chains; allowed: with chains"):
        problem_from({**LOST, "pipelines": None, "parameters": {"step": {"time": 1}, "holders": [0, 0]}})
