"""torch's own parser, checks and lowering on what the torch CSV exporters write: no processes, no tensors."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import pytest

from heuristics.catalogue import HEURISTICS
from pipesched.problem.passes import BW, UNSHARD, B, F, Pass, W
from pipesched.problem.problem import Problem
from pipesched.schedule.metrics import measure
from pipesched.schedule.schedule import Schedule
from pipesched.simulation.simulator import simulate
from pipesched.validation.validator import validate
from runtime.exporters.catalogue import EXPORTERS
from runtime.importers.catalogue import import_schedule
from runtime.lowering.deadlock import Semantics, prove
from runtime.lowering.matching import pair_mistakes
from runtime.lowering.programs import Compute, Instruction, Program, Receive, Send, Transfer, lower
from runtime.lowering.torch_model import torch_lowered
from runtime.running.torch_version import csv_version
from tests.support.later import later
from tests.support.makers import problem, random_order
from tests.support.saving_orders import LOOP

schedules = later("torch.distributed.pipelining.schedules")

NO_TRANSFERS = ("UNSHARD", "RESHARD", "REDUCE_GRAD", "WAIT_REDUCE_GRAD", "WAIT_SEND_F", "WAIT_SEND_B")
Rows = dict[int, list[Any]]


TIMES = {"forward": 2, "backward": 2, "weight": 1, "transfer": 1}


def cases() -> Iterator[tuple[str, Problem, Schedule]]:
    """Published orders, and random ones in which micro-batches overtake each other and backwards split here and there."""
    for name, keys in {"1f1b": {}, "zb-h1": {}, "zbv": {"placement": "v-shape"}, "interleaved-1f1b": LOOP}.items():
        one = problem(4, 8, times=TIMES, **keys)
        yield name, one, HEURISTICS[name].order(one)
    placed: dict[str, tuple[int, int, dict[str, Any]]] = {
        "v-shape": (4, 6, {"placement": "v-shape"}),
        "fused": (4, 6, {"placement": "v-shape", "times": {"forward": 2, "backward": 4}}),
        "wave": (2, 4, {"placement": "wave", "chunks": 3}),
        "one device": (1, 3, {}),
        "uneven": (3, 5, {"placement": [0, 1, 1, 0, 2, 0]}),
        "first and last together": (3, 5, {"placement": [1, 0, 0, 2, 1]}),
        **{f"random {n}": (3, 8, {"placement": [0, 1, 2, 2, 1, 0, 1]} if n % 2 else {}) for n in range(8)},
    }
    for name, (devices, microbatches, keys) in placed.items():
        one = problem(devices, microbatches, **({"times": TIMES} | keys))
        yield name, one, random_order(one, Random(name))
    together = problem(4, 8, times={"forward": 2, "backward": 3, "transfer": 1, "overlapped": 4})
    block = HEURISTICS["1f1b-overlap"].order(together)
    yield "pairs in turn", problem(4, 8, times=TIMES), Schedule(block.orders, "pairs in turn")
    yield "blocks", together, block


CASES = [pytest.param(one, orders, id=name) for name, one, orders in cases()]


@dataclass
class Loaded:
    """What torch made of the files."""

    compute: Rows
    lowered: Rows
    meta: dict[str, Any]
    text: str


def load(one: Problem, orders: Schedule, folder: Path) -> Loaded:
    files = EXPORTERS["torch-csv"].export(simulate(one, orders))
    lowered = load_text(one, files[".csv"], "compute_only", folder)
    compute = {rank: list(map(schedules._Action.from_str, row.split(","))) for rank, row in rows(files[".csv"])}
    return Loaded(compute, lowered, json.loads(files[".meta.json"]), files[".csv"])


def load_text(one: Problem, text: str, form: str, folder: Path) -> Rows:
    """torch's `_load_csv` itself, on a runtime object that was given what its constructor reads off a process group."""
    path = folder / "schedule.csv"
    path.write_text(text)
    runtime = object.__new__(schedules._PipelineScheduleRuntime)
    runtime.pipeline_order = {}
    runtime.pp_group_size, runtime._num_stages = one.devices, one.placement.stages
    runtime._n_microbatches, runtime._stages, runtime._defer_pp_recv = one.microbatches, [], False
    # Of newer versions, as their constructors set it.
    runtime._max_active_stages, runtime._unshard_lookahead = 3, "full"
    runtime._defer_reduce_grad_wait, runtime._max_outstanding_sends = False, None
    runtime._load_csv(str(path), format=form)
    lowered: Rows = runtime.pipeline_order_with_comms
    return lowered


def rows(text: str) -> Iterator[tuple[int, str]]:
    return enumerate(text.splitlines())


def leaves(actions: list[Any]) -> Iterator[Any]:
    for action in actions:
        yield from action.sub_actions or (action,)


@pytest.mark.parametrize(("one", "orders"), CASES)
def test_torch_reads_places_and_lowers_it_as_we_do(one: Problem, orders: Schedule, tmp_path: Path) -> None:
    loaded = load(one, orders, tmp_path)
    is_read_as_written(orders, loaded)
    where = schedules._validate_schedule(loaded.compute, one.devices, one.placement.stages, one.microbatches)
    assert [where[stage] for stage in range(one.placement.stages)] == list(one.placement.stage_device)
    assert loaded.meta["device_of_stage"] == list(one.placement.stage_device)
    comes_to_its_end(one, loaded)
    is_what_was_proved(one, orders, loaded)


def is_read_as_written(orders: Schedule, loaded: Loaded) -> None:
    for rank, row in rows(loaded.text):
        assert [str(action) for action in loaded.compute[rank]] == row.split(",")
    of_torch = {"F": F, "I": B, "W": W, "B": BW}
    label = loaded.meta["csv_microbatch"]
    for device, actions in loaded.compute.items():
        read = [Pass(of_torch[a.computation_type.value], a.stage_index, a.microbatch_index) for a in leaves(actions)]
        assert read == [Pass(p.kind, p.stage, label[p.microbatch]) for p in orders.passes_on(device)]


def comes_to_its_end(one: Problem, loaded: Loaded) -> None:
    """In torch's dry run, where every pair of ranks receives in the order in which it is sent to."""
    device = one.placement.stage_device
    plain = NO_TRANSFERS  # what the dry run does not know
    lowered = {
        rank: [a for a in leaves(actions) if a.computation_type.value not in plain]
        for rank, actions in loaded.lowered.items()
    }
    schedules._simulate_comms_compute(lowered, lambda stage: device[stage], one.placement.stages)
    sent, received = defaultdict(list), defaultdict(list)
    for rank, actions in lowered.items():
        for a in actions:
            word, _, letter = a.computation_type.value.partition("_")
            if word == "SEND":
                to = a.stage_index + (1 if letter == "F" else -1)
                sent[rank, device[to]].append((letter, to, a.microbatch_index))
            elif word == "RECV":
                sender = a.stage_index - (1 if letter == "F" else -1)
                received[device[sender], rank].append((letter, a.stage_index, a.microbatch_index))
    assert sent == received
    assert all(source != target for source, target in sent)


def program_of(one: Problem, lowered: Rows, label: list[int]) -> Program:
    """torch's rows in our words, without what gathers and reduces parameters."""
    original = {new: j for j, new in enumerate(label)}
    of_torch = {"F": F, "I": B, "W": W, "B": BW}
    compute = [a for row in lowered.values() for cell in row for a in leaves([cell]) if a.is_compute_op]
    fused = {(a.stage_index, a.microbatch_index) for a in compute if a.computation_type.value == "B"}

    def pass_of(kind: str, stage: int, microbatch: int) -> Pass:
        return Pass(of_torch[kind], stage, original[microbatch])

    def yielded(letter: str, stage: int, microbatch: int) -> Pass:
        backward = "B" if (stage, microbatch) in fused else "I"
        return pass_of("F" if letter == "F" else backward, stage, microbatch)

    def step(action: Any) -> Instruction:
        if action.is_compute_op:
            subs = [(a.computation_type.value, a.stage_index, a.microbatch_index) for a in leaves([action])]
            return Compute(tuple(pass_of(*each) for each in subs))
        word, _, letter = action.computation_type.value.partition("_")
        forwards = 1 if letter == "F" else -1
        sender = action.stage_index if word == "SEND" else action.stage_index - forwards
        j, device = action.microbatch_index, one.placement.stage_device
        ends = yielded(letter, sender, j), yielded(letter, sender + forwards, j)
        transfer = Transfer(*ends, device[sender], device[sender + forwards])
        return Send(transfer) if word == "SEND" else Receive(transfer)

    plain = NO_TRANSFERS
    return Program(
        one,
        tuple(
            tuple(step(a) for a in lowered[rank] if a.computation_type.value not in plain) for rank in sorted(lowered)
        ),
    )


def is_what_was_proved(one: Problem, orders: Schedule, loaded: Loaded) -> None:
    """Cell for cell where no parameters are gathered; and the whole of it passes the same checks and proofs."""
    device, label = one.placement.stage_device, loaded.meta["csv_microbatch"]
    theirs = schedules._add_send_recv(
        {rank: list(row) for rank, row in loaded.compute.items()}, lambda stage: device[stage], one.placement.stages
    )
    assert program_of(one, theirs, label) == torch_lowered(simulate(one, orders))
    whole = program_of(one, loaded.lowered, label)
    assert pair_mistakes(whole) == []
    for semantics in Semantics:
        assert prove(whole, semantics).steps > 0


@pytest.mark.parametrize("fsdp", ["off", "on"])
@pytest.mark.parametrize(("one", "orders"), CASES)
def test_torch_takes_our_communication_as_it_stands(one: Problem, orders: Schedule, fsdp: str, tmp_path: Path) -> None:
    timeline = simulate(one, orders)
    files = EXPORTERS["torch-csv-comms"].export(timeline, {"fsdp": fsdp, "torch": csv_version()})
    lowered = load_text(one, files[".comms.csv"], "compute_comms", tmp_path)
    for rank, row in rows(files[".comms.csv"]):
        assert [str(action) for action in lowered[rank]] == row.split(",")
    label = json.loads(files[".comms.meta.json"])["csv_microbatch"]
    assert program_of(one, lowered, label) == lower(timeline)
    for stage, device in enumerate(one.placement.stage_device):
        mine = [a for cell in lowered[device] for a in leaves([cell]) if a.stage_index == stage]
        kinds = [a.computation_type.value for a in mine if not a.computation_type.value.startswith("WAIT_SEND")]
        last = max(place for place, kind in enumerate(kinds) if kind in ("W", "B"))
        assert kinds.count("REDUCE_GRAD") == 1
        assert kinds.index("REDUCE_GRAD") > last
        gathers = [(place, kind) for place, kind in enumerate(kinds) if kind in ("UNSHARD", "RESHARD")]
        assert gathers == ([(0, "UNSHARD"), (len(kinds) - 1, "RESHARD")] if fsdp == "on" else [])


@pytest.mark.parametrize("gather", [{"memory": 6}, {"keep": {"window": 1}}, {"keep": "always"}], ids=str)
def test_torch_takes_gathers_and_reductions_where_the_schedule_has_them(gather: Any, tmp_path: Path) -> None:
    parameters = {"gather": {"time": 1} | gather, "reduce": {"time": 3, "on": "rs"}, "step": {"time": 1}}
    one = problem(2, 4, times=TIMES, memory={"capacity": 14}, parameters=parameters, objective="iteration", **LOOP)
    timeline = simulate(one, HEURISTICS["interleaved-1f1b"].order(one))
    text = EXPORTERS["torch-csv-comms"].export(timeline, {"torch": csv_version()})[".comms.csv"]
    lowered = load_text(one, text, "compute_comms", tmp_path)
    for device, row in lowered.items():
        kinds = [(a.stage_index, a.computation_type.value) for cell in row for a in leaves([cell])]
        there: set[int] = set()
        for stage, kind in kinds:
            if kind in ("UNSHARD", "RESHARD"):
                assert (stage in there) == (kind == "RESHARD")
                there ^= {stage}
            elif kind in ("F", "I", "W", "B", "REDUCE_GRAD"):
                assert stage in there
            assert len(there) <= (one.parameters.window or 2)
        ran = [p.kind for p in timeline.schedule.passes_on(device)]
        assert [kind for _, kind in kinds].count("UNSHARD") == ran.count(UNSHARD)
        assert [kind for _, kind in kinds].count("REDUCE_GRAD") == 2
    path = tmp_path / "read.csv"
    path.write_text(text)
    read = simulate(one, import_schedule(path, one))
    assert validate(read) == []
    assert measure(read).makespan_ticks == measure(timeline).makespan_ticks


def test_the_cases_hold_what_they_promise() -> None:
    held = {name: (one, orders) for name, one, orders in cases()}
    for name in ("blocks", "pairs in turn"):
        assert any(len(slot) == 2 for order in held[name][1].orders for slot in order)
    files = {name: EXPORTERS["torch-csv"].export(simulate(*held[name])) for name in held}
    assert "OVERLAP_F_B" in files["blocks"][".csv"]
    assert "OVERLAP_F_B" not in files["pairs in turn"][".csv"]
    labels = [json.loads(files[name][".meta.json"])["csv_microbatch"] for name in held if name.startswith("random")]
    assert sum(label != sorted(label) for label in labels) >= len(labels) // 2
