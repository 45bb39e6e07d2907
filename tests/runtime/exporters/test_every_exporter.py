"""Every exporter on every published schedule: what it writes runs as the schedule says, or the refusal names another way."""

from __future__ import annotations

import json
import re
import shlex
import sys
import types
from collections import defaultdict, deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cache
from inspect import Parameter, Signature, signature
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any

import pytest

from commands.main import main
from commands.shared.file_arguments import write_schedule
from heuristics.catalogue import HEURISTICS
from pipesched.errors import BadInput, DoesNotApply
from pipesched.files.problem_file import problem_from
from pipesched.files.schedule_file import ScheduleFile
from pipesched.problem.passes import BW, B, F, Pass, PassKind, Slot, W
from pipesched.problem.problem import Problem
from pipesched.schedule.schedule import Schedule
from pipesched.schedule.timeline import Timeline
from pipesched.simulation.simulator import simulate
from runtime.exporters.catalogue import EXPORTERS
from runtime.exporters.restrictions import RESTRICTIONS
from runtime.importers.catalogue import import_schedule
from solver.solve import solve
from tests.support.counted import counted
from tests.support.daily import daily
from tests.support.makers import problem, random_order, schedule

Label = list[int]
PLACED: dict[str, dict[str, object]] = {
    "linear": {"placement": "linear"},
    "v-shape": {"placement": "v-shape"},
    "wave": {"placement": "wave", "chunks": 4},
    "interleaved": {"placement": "interleaved", "chunks": 2},
    "bidirectional": {"placement": "bidirectional"},
    "explicit": {"placement": [0, 2, 1, 3, 3, 0]},
}
TIMES: dict[str, dict[str, object]] = {
    "split": {"forward": 2, "backward": 2, "weight": 2, "fused": 4, "transfer": 1},
    "fused": {"forward": 2, "backward": 4, "transfer": 1},
    "blocks": {"forward": 2, "backward": 2, "weight": 2, "fused": 4, "transfer": 1, "overlapped": 5},
}


PLACES = [(where, how) for where in PLACED for how in TIMES]


@cache
def timelines(where: str, how: str) -> tuple[Timeline, ...]:
    """Every published schedule that is defined on such a placement and kind of times, and two random orders.

    Those with "cost-aware" are orders of the same kinds of passes as what they improve, and take long to find.
    Of those without pairs every other one is enough; where the backward splits, the others are those of the next day.
    """
    one = problem(4, 8, times=TIMES[how], **PLACED[where])
    found: list[Schedule] = []
    for heuristic in HEURISTICS:
        with suppress(DoesNotApply):
            order = None if heuristic.name.endswith("-cost-aware") else heuristic.order(one)
            if order is not None and order.orders not in [other.orders for other in found]:
                found.append(order)
    paired = [order for order in found if any(len(slot) == 2 for slots in order.orders for slot in slots)]
    single = [order for order in found if order not in paired]
    if len(found) > 2:
        single = list(daily(single, 2)) if how == "split" else single[::2]
    found = [*paired, *single]
    found.append(random_order(one, Random(0), pairs=0.3))
    return tuple(simulate(one, order) for order in found)


def on_every_schedule(check: Callable[..., None]) -> Callable[..., None]:
    """A check of one `timeline` as a test on all of a place's, which are made when it runs, not when it is found."""

    def test(where: str, how: str, **fixtures: object) -> None:
        for timeline in timelines(where, how):
            try:
                check(timeline=timeline, **fixtures)
            except BaseException as error:
                error.add_note(f"with the schedule {timeline.schedule.name}")
                raise

    fixtures = [p for name, p in signature(check).parameters.items() if name != "timeline"]
    places = [Parameter(name, Parameter.POSITIONAL_OR_KEYWORD) for name in ("where", "how")]
    test.__name__, test.__doc__ = check.__name__, check.__doc__
    test.__signature__ = Signature(places + fixtures)  # type: ignore[attr-defined]
    return pytest.mark.parametrize(("where", "how"), PLACES)(test)


def renumbered(timeline: Timeline, label: Label) -> Schedule:
    def slot(old: Slot) -> Slot:
        passes = [p._replace(microbatch=label[p.microbatch]) for p in old]
        return (passes[0],) if len(passes) == 1 else (passes[0], passes[1])

    return Schedule(tuple(tuple(map(slot, order)) for order in timeline.schedule.orders))


def one_by_one(timeline: Timeline, order: Schedule) -> list[list[Slot]]:
    """The slots of each device; a pair that is no block as two."""
    rows: list[list[Slot]] = []
    for old_row, row in zip(timeline.schedule.orders, order.orders, strict=True):
        rows.append([])
        for old, new in zip(old_row, row, strict=True):
            rows[-1] += [new] if timeline.in_block(old[0]) else [(p,) for p in new]
    return rows


def first_forwards(timeline: Timeline, stage: int) -> Label:
    """The place of each micro-batch among this stage's forwards."""
    order = [p.microbatch for p in timeline.schedule.passes() if p.kind is F and p.stage == stage]
    return [order.index(j) for j in range(timeline.problem.microbatches)]


def exported(name: str, timeline: Timeline, **options: str) -> dict[str, str] | None:
    """The files, or None where the format cannot express it: then the reason names others, and each of them can."""
    try:
        files = EXPORTERS[name].export(timeline, {key.replace("_", "-"): value for key, value in options.items()})
    except BadInput as error:
        assert len(error.mistakes) == 1
        assert str(error).startswith(f"{name}: ")
        reason = str(error).removeprefix(f"{name}: ")
        others = [other for other in EXPORTERS.names() if other != name and re.search(rf"\b{other}\b(?!-)", reason)]
        assert others, f"names no format that can: {error}"
        assert [other for other in others if not can(other, timeline)] == [], f"{error}"
        return None
    assert EXPORTERS[name].suffix in files
    return files


# Whether a format writes a timeline, which is kept so that its identity stays its own; tests ask this of each often.
_WRITTEN: dict[tuple[str, int, tuple[tuple[str, str], ...]], tuple[Timeline, bool]] = {}


def can(name: str, timeline: Timeline, options: Mapping[str, str] | None = None) -> bool:
    key = name, id(timeline), tuple(sorted((options or {}).items()))
    if key not in _WRITTEN:
        try:
            EXPORTERS[name].export(timeline, options)
        except BadInput:
            _WRITTEN[key] = timeline, False
        else:
            _WRITTEN[key] = timeline, True
    return _WRITTEN[key][1]


def read_back(text: str, one: Problem, folder: Path) -> Schedule:
    path = folder / "theirs"
    path.write_text(text)
    return import_schedule(path, one)


@on_every_schedule
def test_a_program_holds_every_schedule(timeline: Timeline, tmp_path: Path) -> None:
    files = exported("program", timeline)
    assert files is not None
    back = read_back(files[".program.json"], timeline.problem, tmp_path)
    assert [list(row) for row in back.orders] == one_by_one(timeline, timeline.schedule)
    document = json.loads(files[".program.json"])
    assert document["deadlock"].startswith("free of deadlock: ")
    for device, row in enumerate(document["programs"]):
        for step in row:
            if step["do"] in ("SEND", "RECV"):
                assert document["device_of_stage"][step["stage"]] == device
                assert document["device_of_stage"][step["peer_stage"]] == step["peer"] != device
                chain = document["chains"][step["chain"]]
                assert abs(chain.index(step["stage"]) - chain.index(step["peer_stage"])) == 1
    run_messages(document["programs"])


def run_messages(rows: list[list[dict[str, Any]]]) -> None:
    """Blocking ends: a SEND goes on once its peer stands at the RECV of the same tensor. All rows end."""
    at = [0] * len(rows)

    def name(step: dict[str, Any], sender: int, receiver: int) -> tuple[object, ...]:
        return sender, receiver, step["tensor"], step["microbatch"]

    moved = True
    while moved:
        moved = False
        for device, row in enumerate(rows):
            while at[device] < len(row) and row[at[device]]["do"] not in ("SEND", "RECV"):
                at[device], moved = at[device] + 1, True
            if at[device] == len(row) or row[at[device]]["do"] == "RECV":
                continue
            step, peer = row[at[device]], row[at[device]]["peer"]
            if at[peer] < len(rows[peer]):
                there = rows[peer][at[peer]]
                if there["do"] == "RECV" and name(there, there["peer"], peer) == name(step, device, peer):
                    at[device], at[peer], moved = at[device] + 1, at[peer] + 1, True
    assert at == [len(row) for row in rows]


@pytest.mark.parametrize("name", ["torch-csv", "torch-csv-comms"])
@on_every_schedule
def test_both_csvs_are_read_back(name: str, timeline: Timeline, tmp_path: Path) -> None:
    files = exported(name, timeline)
    if files is None:
        assert len(timeline.problem.placement.chains) == 2
        return
    text = files[EXPORTERS[name].suffix]
    label = first_forwards(timeline, timeline.problem.placement.stages - 1)
    back = read_back(text, timeline.problem, tmp_path)
    assert [list(row) for row in back.orders] == one_by_one(timeline, renumbered(timeline, label))
    meta = json.loads(files[EXPORTERS[name].suffix.replace("csv", "meta.json")])
    assert meta["deadlock"].startswith("free of deadlock: ")
    assert meta["csv_microbatch"] == label


@pytest.mark.parametrize("fsdp", ["off", "on"])
def test_exact_cells_with_communication(fsdp: str) -> None:
    one = problem(2, 1, placement="v-shape", times={"forward": 1, "backward": 1, "weight": 1})
    timeline = simulate(one, schedule("F0.0 F3.0 B3.0 W3.0 BW0.0", "F1.0 F2.0 B2.0 B1.0 W2.0 W1.0"))
    files = exported("torch-csv-comms", timeline, fsdp=fsdp)
    assert files is not None
    rows = [line.split(",") for line in files[".comms.csv"].splitlines()]
    gather = ("UNSHARD", "RESHARD")
    assert [[c for c in row if not c.endswith(gather)] for row in rows] == [
        [
            "0F0", "0SEND_F0", "3RECV_F0", "3F0", "3I0", "3SEND_B0", "3W0", "3REDUCE_GRAD", "0RECV_B0", "0B0",
            "0REDUCE_GRAD",
        ],
        [
            "1RECV_F0", "1F0", "2F0", "2SEND_F0", "2RECV_B0", "2I0", "1I0", "1SEND_B0", "2W0", "2REDUCE_GRAD",
            "1W0", "1REDUCE_GRAD",
        ],
    ]  # fmt: skip
    held = [[c for c in row if c.endswith(gather)] for row in rows]
    assert held == (
        [[], []]
        if fsdp == "off"
        else [["0UNSHARD", "3UNSHARD", "3RESHARD", "0RESHARD"], ["1UNSHARD", "2UNSHARD", "2RESHARD", "1RESHARD"]]
    )


@on_every_schedule
def test_node_lists_are_read_back_with_their_times(timeline: Timeline, tmp_path: Path) -> None:
    files = exported("zero-bubble-nodes", timeline)
    if files is None:
        return
    label = first_forwards(timeline, 0)
    order = renumbered(timeline, label)
    back = read_back(files[".nodes.json"], timeline.problem, tmp_path)
    assert [list(row) for row in back.orders] == one_by_one(timeline, order)
    again = simulate(timeline.problem, back)
    for device, row in enumerate(json.loads(files[".nodes.json"])):
        for node in row:
            p = next(q for q in back.passes() if (q.kind, q.stage, q.microbatch) == key(node))
            assert (node["start_time"], node["completion_time"]) == (again.start(p), again.end(p))
            assert node["stage"] == device
            assert timeline.problem.placement.stages_of[device][node["chunk"]] == node["layer_group_idx"]


def key(node: dict[str, Any]) -> tuple[object, ...]:
    return node["type"], node["layer_group_idx"], node["microbatch"]


# --- JaxPP: the least of its classes that a generated module needs, and its checks in our words ---


class TaskType(Enum):
    FWD, BWD, BWD_I, BWD_W = 1, 2, 3, 4


@dataclass(frozen=True)
class Task:
    stage_id: int
    mubatch_idx: int
    fwd_or_bwd: TaskType

    @classmethod
    def make(cls, stage_id: int, mubatch_idx: int, fwd_or_bwd: TaskType) -> Task:
        return cls(stage_id, mubatch_idx, fwd_or_bwd)


class FusedTask(tuple):  # type: ignore[type-arg]
    __slots__ = ()


@dataclass(eq=True, frozen=True)
class BaseSchedule:
    num_stages: int
    is_partial_bwd: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        if self.num_stages <= 0:
            raise ValueError


def module_of(text: str, stubs: dict[str, dict[str, object]], monkeypatch: pytest.MonkeyPatch) -> types.ModuleType:
    """A generated module, run with stand-ins for the packages it imports."""
    for name, held in stubs.items():
        module = types.ModuleType(name)
        vars(module).update(held)
        monkeypatch.setitem(sys.modules, name, module)
    generated = types.ModuleType("generated")
    monkeypatch.setitem(sys.modules, "generated", generated)
    exec(compile(text, "generated", "exec"), vars(generated))
    return generated


JAXPP = {
    "jaxpp": {},
    "jaxpp.schedules": {"BaseSchedule": BaseSchedule, "FusedTask": FusedTask, "Task": Task},
    "jaxpp.types": {"MpmdIdx": int, "TaskType": TaskType},
}


@on_every_schedule
def test_jaxpp_gets_the_same_order(timeline: Timeline, monkeypatch: pytest.MonkeyPatch) -> None:
    files = exported("jaxpp", timeline)
    if files is None:
        return
    made = module_of(files[".jaxpp.py"], JAXPP, monkeypatch).Schedule()
    one = timeline.problem
    assert [made.get_mpmd_idx(stage) for stage in range(made.num_stages)] == list(one.placement.stage_device)
    rows = made.tasks(one.microbatches)
    with pytest.raises(ValueError, match="micro-batches"):
        made.tasks(one.microbatches + 1)
    order = renumbered(timeline, first_forwards(timeline, 0))
    assert made.is_partial_bwd == any(p.kind is B for p in order.passes())
    kinds = {F: [TaskType.FWD], B: [TaskType.BWD_I], W: [TaskType.BWD_W], BW: [TaskType.BWD]}
    if made.is_partial_bwd:
        kinds[BW] = [TaskType.BWD_I, TaskType.BWD_W]
    # The k-th weight pass of a stage takes micro-batch k, whichever it takes in the schedule.
    number: dict[int, int] = defaultdict(lambda: -1)

    def task_of(p: Pass, kind: TaskType) -> Task:
        if kind is not TaskType.BWD_W:
            return Task(p.stage, p.microbatch, kind)
        number[p.stage] += 1
        return Task(p.stage, number[p.stage], kind)

    for row, slots in zip(rows, one_by_one(timeline, order), strict=True):
        flat = [task for entry in row for task in (entry if isinstance(entry, FusedTask) else [entry])]
        assert flat == [task_of(p, kind) for slot in slots for p in slot for kind in kinds[p.kind]]
        assert sum(isinstance(entry, FusedTask) for entry in row) == sum(len(slot) == 2 for slot in slots)
        seen: dict[object, int] = defaultdict(lambda: -1)
        for task in flat:
            assert task.mubatch_idx == seen[task.stage_id, task.fwd_or_bwd] + 1
            seen[task.stage_id, task.fwd_or_bwd] += 1
        for task, following in zip(flat, [*flat[1:], None], strict=True):
            if task.stage_id == 0 and task.fwd_or_bwd is TaskType.BWD_I:
                assert following == Task(0, task.mubatch_idx, TaskType.BWD_W)


# --- DeepSpeed: its base class in our words, and an engine of blocking ends that keeps one loss and one gradient ---


class PipeSchedule:
    def __init__(self, micro_batches: int, stages: int, stage_id: int) -> None:
        self.micro_batches, self.stages, self.stage_id = micro_batches, stages, stage_id


@dataclass
class Instruction:
    buffer_id: int | None = None
    phase: int = 0


INSTRUCTIONS = [
    "LoadMicroBatch", "ForwardPass", "BackwardPass", "SendActivation", "RecvActivation", "SendGrad", "RecvGrad",
    "CommitP2P", "ReduceTiedGrads", "ReduceGrads", "OptimizerStep",
]  # fmt: skip
DEEPSPEED: dict[str, dict[str, object]] = {
    "deepspeed": {},
    "deepspeed.runtime": {},
    "deepspeed.runtime.pipe": {},
}
SCHEDULE_MODULE = types.ModuleType("deepspeed.runtime.pipe.schedule")
vars(SCHEDULE_MODULE).update({name: type(name, (Instruction,), {}) for name in INSTRUCTIONS}, PipeSchedule=PipeSchedule)
DEEPSPEED["deepspeed.runtime.pipe"]["schedule"] = SCHEDULE_MODULE


class Engine:
    """One stage. A buffer holds the slice of the batch its tensors came from; what does not fit is an assertion."""

    def __init__(self, made: Any, last: bool) -> None:
        self.steps = deque(step for steps in made.steps() for step in steps)
        self.buffers = made.num_pipe_buffers()
        self.last = last
        self.inputs: dict[int, int] = {}
        self.labels: dict[int, int] = {}
        self.outputs: dict[int, int] = {}
        self.gradients: dict[int, int] = {}
        self.loss: int | None = None
        self.received: int | None = None
        self.loads = 0
        self.ran: list[tuple[str, int]] = []

    def run_own(self, first: bool) -> bool:
        """The next instruction if it needs no peer."""
        name, buffer = type(self.steps[0]).__name__, self.steps[0].buffer_id
        assert buffer is None or 0 <= buffer < self.buffers
        if name == "LoadMicroBatch":
            for held in [self.inputs] * first + [self.labels] * self.last:
                assert buffer not in held, "the buffer still holds another slice"
                held[buffer] = self.loads
            self.loads += 1
        elif name == "ForwardPass":
            mine = self.inputs[buffer]
            if self.last:
                assert self.labels.pop(buffer) == mine, "labels of another slice"
                assert self.loss is None, "the loss before was not used"
                self.loss = mine
            else:
                assert buffer not in self.outputs
                self.outputs[buffer] = mine
            self.ran.append(("F", mine))
        elif name == "BackwardPass":
            mine = self.inputs[buffer]
            given, self.loss, self.received = (self.loss, None, None) if self.last else (self.received, None, None)
            assert given == mine, "a backward took the gradient of another slice"
            if first:
                self.inputs.pop(buffer)
            self.gradients[buffer] = mine
            self.ran.append(("BW", mine))
        elif name not in ("ReduceTiedGrads", "ReduceGrads", "OptimizerStep"):
            return False
        self.steps.popleft()
        return True


class EngineV:
    """One rank of two stages: a buffer for each phase and micro-batch; what is queued happens at the next CommitP2P."""

    def __init__(self, made: Any, rank: int, ranks: int) -> None:
        self.steps = deque(step for steps in made.steps() for step in steps)
        self.rank, self.ranks, self.microbatches = rank, ranks, made.micro_batches
        self.buffers = made.num_pipe_buffers()
        self.stage_of = (rank, 2 * ranks - 1 - rank)
        self.held: set[tuple[str, int]] = set()
        self.queued: list[tuple[str, int, int]] = []
        self.ran: list[Pass] = []

    def run_own(self) -> bool:
        """The next instruction, unless it waits for a peer or the row has ended."""
        if not self.steps or (type(self.steps[0]).__name__ == "CommitP2P" and self.queued):
            return False
        step = self.steps.popleft()
        name, buffer, phase = type(step).__name__, step.buffer_id, step.phase
        if name == "LoadMicroBatch":
            self.held.add(("input", buffer))
        elif name in ("ForwardPass", "BackwardPass"):
            assert buffer // self.microbatches == phase
            assert buffer < self.buffers
            self.run(F if name == "ForwardPass" else BW, buffer, phase)
        elif name.startswith(("Send", "Recv")):
            stage = self.stage_of[phase]
            ahead = 1 if name.endswith("Activation") else -1
            peer = stage + (ahead if name.startswith("Send") else -ahead)
            self.queued.append((name, buffer, min(peer, 2 * self.ranks - 1 - peer)))
        return True

    def run(self, kind: PassKind, buffer: int, phase: int) -> None:
        stage, microbatch = self.stage_of[phase], buffer % self.microbatches
        turn = self.rank == self.ranks - 1 and phase == (kind is BW)  # where the V turns, on one rank
        if kind is F:
            self.held.remove(("input", buffer))
            self.held |= {("input of backward", buffer), ("output", buffer)}
            if turn:
                self.held.add(("input", buffer + self.microbatches))
        else:
            self.held.remove(("input of backward", buffer))
            if stage < 2 * self.ranks - 1:
                self.held.remove(("gradient", buffer))
            if turn:
                self.held.add(("gradient", buffer - self.microbatches))
            self.held.add(("input gradient", buffer))
        self.ran.append(Pass(kind, stage, microbatch))


def run_engines_v(engines: list[EngineV]) -> None:
    """A batch of one transfer happens when its peer has queued the other end."""
    while any(engine.steps for engine in engines):
        moved = False
        for engine in engines:
            while engine.run_own():
                moved = True
        for engine in engines:
            if not engine.queued or not engine.queued[0][0].startswith("Send"):
                continue
            name, buffer, peer = engine.queued[0]
            there = engines[peer]
            if there.queued and there.queued[0] == (name.replace("Send", "Recv"), buffer, engine.rank):
                engine.queued.pop(0)
                there.queued.pop(0)
                engine.held.remove(("output" if name == "SendActivation" else "input gradient", buffer))
                there.held.add(("input" if name == "SendActivation" else "gradient", buffer))
                moved = True
        assert moved, "the engines hang"


def run_engines(engines: list[Engine]) -> None:
    moved = True
    while moved:
        moved = False
        for stage, engine in enumerate(engines):
            while engine.steps and engine.run_own(stage == 0):
                moved = True
            name = type(engine.steps[0]).__name__ if engine.steps else ""
            if not name.startswith("Send"):
                continue
            peer = engines[stage + (1 if name == "SendActivation" else -1)]
            if not peer.steps or type(peer.steps[0]).__name__ != name.replace("Send", "Recv"):
                continue
            here, there = engine.steps.popleft().buffer_id, peer.steps.popleft().buffer_id
            moved = True
            if name == "SendActivation":
                assert there not in peer.inputs
                peer.inputs[there] = engine.outputs[here]
            else:
                assert peer.received is None, "the gradient before was not used"
                peer.received = engine.gradients.pop(here)
                assert peer.outputs.pop(there) == peer.received == engine.inputs.pop(here)
    assert not any(engine.steps for engine in engines), "the engines hang"


@on_every_schedule
def test_deepspeed_runs_the_same_order(timeline: Timeline, monkeypatch: pytest.MonkeyPatch) -> None:
    files = exported("deepspeed", timeline)
    if files is not None:
        run_deepspeed(timeline, files, monkeypatch)


def run_deepspeed(timeline: Timeline, files: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> list[int]:
    one = timeline.problem
    made = module_of(files[".deepspeed.py"], DEEPSPEED, monkeypatch).Schedule
    with pytest.raises(ValueError, match="micro-batches"):
        made(one.microbatches + 1, one.devices, 0)
    if one.placement.stages > one.devices:
        pair = [EngineV(made(one.microbatches, one.devices, rank), rank, one.devices) for rank in range(one.devices)]
        run_engines_v(pair)
        assert [engine.ran for engine in pair] == [
            list(timeline.schedule.passes_on(rank)) for rank in range(one.devices)
        ]
        return [engine.buffers for engine in pair]
    last = one.devices - 1
    schedules = [made(one.microbatches, one.devices, stage) for stage in range(one.devices)]
    engines = [Engine(each, stage == last) for stage, each in enumerate(schedules)]
    ends = [type(step).__name__ for step in list(engines[0].steps)[-3:]]
    assert ends == ["ReduceTiedGrads", "ReduceGrads", "OptimizerStep"]
    run_engines(engines)
    order = renumbered(timeline, first_forwards(timeline, 0))
    for stage, engine in enumerate(engines):
        assert engine.ran == [(p.kind.value, p.microbatch) for p in order.passes_on(stage)]
    return [each.num_pipe_buffers() for each in schedules]


def test_deepspeed_takes_a_v_of_full_backwards_in_any_order(monkeypatch: pytest.MonkeyPatch) -> None:
    one = problem(3, 7, placement="v-shape", times=TIMES["fused"])
    for seed in range(5):
        timeline = simulate(one, random_order(one, Random(seed)))
        files = exported("deepspeed", timeline)
        assert files is not None
        assert run_deepspeed(timeline, files, monkeypatch) == [14, 14, 14]


def test_deepspeed_installs_itself_or_says_why_not(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before 0.19.8 an engine has no `_train_schedule`, and one that is set is ignored."""

    class PipelineEngine:
        micro_batches, num_stages, stage_id = 8, 4, 1

        def _train_schedule(self) -> str:
            return "its own"

    class DualPipeVEngine(PipelineEngine):
        pass

    class Older:
        micro_batches, num_stages, stage_id = 8, 4, 1

    one = problem(4, 8, times=TIMES["fused"])
    files = exported("deepspeed", simulate(one, HEURISTICS["1f1b"].order(one)))
    assert files is not None
    made = module_of(files[".deepspeed.py"], DEEPSPEED, monkeypatch)
    engine: Any = PipelineEngine()
    made.install(engine)
    assert isinstance(engine._train_schedule(), made.Schedule)
    assert engine._train_schedule().stage_id == 1
    for wrong, said in ((Older(), "0.19.8 or later"), (DualPipeVEngine(), "is for a PipelineEngine")):
        with pytest.raises(ValueError, match=said):
            made.install(wrong)
    engine.micro_batches = 4
    with pytest.raises(ValueError, match="8 micro-batches and 4 ranks"):
        made.install(engine)


def test_deepspeed_with_micro_batches_that_overtake(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stage 1 runs micro-batch 1 first: it loads the labels of micro-batch 0 as well, ahead of their time."""
    one = problem(2, 3, times={"forward": 1, "backward": 2})
    rows = ("F0.0 F0.1 F0.2 BW0.1 BW0.0 BW0.2", "F1.1 BW1.1 F1.0 BW1.0 F1.2 BW1.2")
    timeline = simulate(one, schedule(*rows))
    files = exported("deepspeed", timeline)
    assert files is not None
    assert run_deepspeed(timeline, files, monkeypatch) == [3, 2]
    words = files[".deepspeed.py"].splitlines()
    second = next(line for line in words if line.lstrip().startswith('"RecvActivation'))
    assert second.split()[1:3] == ["LoadMicroBatch:1", "LoadMicroBatch:0"]


def test_deepspeed_needs_no_more_buffers_than_its_own_schedule(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its 1F1B has one for each stage from here to the last, and one more."""
    one = problem(4, 8, times=TIMES["fused"])
    timeline = simulate(one, HEURISTICS["1f1b"].order(one))
    files = exported("deepspeed", timeline)
    assert files is not None
    mine = run_deepspeed(timeline, files, monkeypatch)
    assert all(count <= 4 - stage + 1 for stage, count in enumerate(mine))
    assert mine[0] == 4


# --- torchtitan ---


@dataclass
class TitanTraining:
    local_batch_size: int = 8
    disable_cuda_graphs: bool = False


@dataclass
class SelectiveAC:
    @dataclass
    class Config:
        determinism_check: str = "default"


@dataclass
class ChunkedLoss:
    num_chunks: int = 8
    loss_fn: str = "cross entropy"


@dataclass
class TitanParallelism:
    """What a torchtitan configuration has for a pipeline, of 0.3.0 where it has the size of a micro-batch."""

    pipeline_parallel_degree: int = 1
    module_fqns_per_model_part: list[list[str]] | None = None
    pipeline_parallel_schedule: str = "1F1B"
    pipeline_parallel_schedule_csv: str | None = ""


@dataclass
class TitanRelease(TitanParallelism):
    pipeline_parallel_microbatch_size: int = 1


@dataclass
class TitanMain(TitanParallelism):
    num_pp_microbatches: int = 1


def titan(text: str, parallelism: TitanParallelism, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The configuration after the generated module was applied to it."""
    config = types.SimpleNamespace(
        training=TitanTraining(),
        parallelism=parallelism,
        activation_checkpoint=SelectiveAC.Config(),
        loss=ChunkedLoss(),
    )
    return module_of(text, {}, monkeypatch).apply(config)


def flags_of(text: str, version: str, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    words = shlex.split(module_of(text, {}, monkeypatch).FLAGS[version])
    bare = [word for word in words if word in ("--training.disable_cuda_graphs", "activation-checkpoint:none")]
    valued = [word for word in words if word not in bare]
    return dict(zip(valued[::2], valued[1::2], strict=True)) | dict.fromkeys(bare, "True")


def titan_stages(name: str, devices: int, chunks: int) -> list[int]:
    """The device of each stage that torchtitan builds for a schedule's name."""
    if name == "ZBVZeroBubble":
        return [*range(devices), *reversed(range(devices))]
    assert name == ("1F1B" if chunks == 1 else "Interleaved1F1B")
    return [stage % devices for stage in range(devices * chunks)]


@on_every_schedule
def test_torchtitan_builds_the_stages_the_csv_uses(timeline: Timeline, monkeypatch: pytest.MonkeyPatch) -> None:
    files = exported("torchtitan", timeline, layers="30", microbatch_size="3")
    if files is None:
        return
    one = timeline.problem
    chunks = one.placement.stages // one.devices
    text = files[".torchtitan.py"]
    release = titan(text, TitanRelease(), monkeypatch)
    main_branch = titan(text, TitanMain(), monkeypatch).parallelism
    assert (
        release.training.local_batch_size // release.parallelism.pipeline_parallel_microbatch_size == one.microbatches
    )
    assert main_branch.num_pp_microbatches == one.microbatches
    for parallel in (release.parallelism, main_branch):
        name = parallel.pipeline_parallel_schedule
        assert titan_stages(name, one.devices, chunks) == list(one.placement.stage_device)
        assert parallel.pipeline_parallel_degree == one.devices
        modules = [name for part in parallel.module_fqns_per_model_part for name in part]
        assert modules == ["tok_embeddings", *(f"layers.{n}" for n in range(30)), "norm", "lm_head"]
        assert len(parallel.module_fqns_per_model_part) == one.placement.stages
        assert all(parallel.module_fqns_per_model_part)
        assert parallel.pipeline_parallel_schedule_csv == "schedule.csv"
    with pytest.raises(ValueError, match="names the number of micro-batches"):
        titan(text, TitanParallelism(), monkeypatch)
    split = {p.stage for p in timeline.schedule.passes() if p.kind is B}
    assert release.training.disable_cuda_graphs
    assert (release.activation_checkpoint is None) is bool(split)
    assert (release.loss == "cross entropy") is (one.placement.stages - 1 in split)
    if one.placement.stages - 1 in split:
        assert module_of(text, {}, monkeypatch).FLAGS == {}
        return
    for version, parallel in (("0.3.0", release.parallelism), ("main", main_branch)):
        flags = flags_of(text, version, monkeypatch)
        assert (flags.pop("activation-checkpoint:none", None) == "True") is bool(split)
        for flag, value in flags.items():
            table, _, key = flag.removeprefix("--").partition(".")
            assert value == str(getattr(parallel if table == "parallelism" else release.training, key))
    assert files[".csv"] == EXPORTERS["torch-csv"].export(timeline)[".csv"]


def test_torchtitan_itself_takes_flags_and_configuration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = pytest.importorskip("torchtitan.config", exc_type=ImportError)
    registry = pytest.importorskip("torchtitan.models.llama3.config_registry", exc_type=ImportError)
    one = problem(4, 8, times=TIMES["split"])
    for rows, fused in ((HEURISTICS["zb-h1"].order(one), False), (HEURISTICS["1f1b"].order(one), True)):
        text = EXPORTERS["torchtitan"].export(simulate(one, rows), {"microbatch-size": "2"})[".torchtitan.py"]
        found = module_of(text, {}, monkeypatch).apply(registry.llama3_debugmodel())
        found.__post_init__()  # checks it
        assert found.training.local_batch_size == 16
        assert hasattr(found.loss, "num_chunks") is fused
        assert (found.activation_checkpoint is None) is not fused
        if fused:
            words = shlex.split(module_of(text, {}, monkeypatch).FLAGS["0.3.0"])
            names = ["--module", "llama3", "--config", "llama3_debugmodel"]
            parsed = config.ConfigManager().parse_args([*names, *words])
            assert parsed.parallelism == found.parallelism
            assert parsed.training == found.training


@pytest.mark.parametrize(
    ("chunks", "options", "reason"),
    [
        (3, {}, "--option layers=N"),
        (2, {"layers": "5"}, "found layers=5"),
        (2, {"layers": "4,4"}, "found layers=4,4"),
        (2, {"layers": "1,1,1,0,1,1,1,1"}, "for stage 3"),
        (2, {"microbatch-size": "0"}, "found microbatch-size=0"),
    ],
)  # fmt: skip
def test_settings_that_torchtitan_cannot_use_are_refused(chunks: int, options: dict[str, str], reason: str) -> None:
    one = problem(4, 8, placement="interleaved", chunks=chunks, times=TIMES["fused"])
    with pytest.raises(BadInput) as caught:
        EXPORTERS["torchtitan"].export(simulate(one, HEURISTICS["interleaved-1f1b"].order(one)), options)
    assert reason in str(caught.value)


@pytest.mark.parametrize(
    ("layers", "counts"),
    [("25", [3, 4, 4, 3, 3, 3, 3, 2]), ("1,2,3,4,5,6,7,0", [1, 2, 3, 4, 5, 6, 7, 0]), ("", None)],
)
def test_layers_of_each_stage_are_shared_out_or_as_given(
    layers: str, counts: list[int] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Embedding and head count as a layer each: of 27, three stages hold four and five hold three."""
    one = problem(4, 8, placement="interleaved", chunks=2, times=TIMES["fused"])
    timeline = simulate(one, HEURISTICS["interleaved-1f1b"].order(one))
    text = EXPORTERS["torchtitan"].export(timeline, {"layers": layers})[".torchtitan.py"]
    parts = titan(text, TitanMain(), monkeypatch).parallelism.module_fqns_per_model_part
    found = parts and [sum(name.startswith("layers.") for name in part) for part in parts]
    assert found == counts


# --- what is not supported by each format ---

HAND = {"times": {"forward": 1, "backward": 1, "weight": 1}}
SPLIT = ("F0.0 F0.1 B0.0 W0.0 B0.1 W0.1", "F1.0 B1.0 W1.0 F1.1 B1.1 W1.1")


@pytest.mark.parametrize(
    ("name", "placement", "rows", "reason"),
    [
        ("deepspeed", "linear", SPLIT, "found B0.0"),
        ("deepspeed", [0, 1, 0], ("F0.0 F2.0 BW2.0 BW0.0", "F1.0 BW1.0"), "found stages on devices 0, 1, 0"),
        ("deepspeed", [0, 1, 1, 0], ("F0.0 F3.0 BW3.0 BW0.0", "F1.0 F2.0 BW2.0 BW1.0"), "found 1 micro-batches"),
        ("deepspeed", "linear", ("F0.0 F0.1 BW0.0 BW0.1", "F1.0 F1.1 BW1.0 BW1.1"), "on the last stage F1.0 is followed by F1.1"),
        ("jaxpp", "linear", ("F0.0 F0.1 B0.0 B0.1 W0.0 W0.1", SPLIT[1]), "B0.0 is followed by B0.1"),
        ("jaxpp", "linear", ("F0.0 F0.1 BW0.1 BW0.0", "F1.0 F1.1 BW1.1 BW1.0"), "B of stage 0 takes the micro-batches"),
        ("zero-bubble-nodes", "linear", ("F0.0 F0.1 BW0.0 BW0.1", SPLIT[1]), "micro-batch 0 runs BW on some stages and B on others"),
        ("zero-bubble-nodes", "linear", ("F0.0 F0.1 BW0.1 BW0.0", "F1.0 F1.1 BW1.1 BW1.0"), "needs one order"),
        ("zero-bubble-nodes", [0, 0, 1, 1], ("F0.0 F1.0 BW1.0 BW0.0", "F2.0 F3.0 BW3.0 BW2.0"), "stages 0 and 1 are both on device 0"),
        ("zero-bubble-nodes", [0, 1, 0], ("F0.0 F2.0 BW2.0 BW0.0", "F1.0 BW1.0"), "found 2, 1 stages on the devices"),
    ],
)  # fmt: skip
def test_limits_are_named(name: str, placement: object, rows: tuple[str, ...], reason: str) -> None:
    microbatches = 1 if isinstance(placement, list) else 2
    timeline = simulate(problem(2, microbatches, placement=placement, **HAND), schedule(*rows))
    with pytest.raises(BadInput) as caught:
        EXPORTERS[name].export(timeline)
    assert reason in str(caught.value)
    assert exported(name, timeline) is None


# The Ws of stage 1 in another order than its Bs; and a BW of JaxPP's between B and W of another micro-batch.
LATE = (
    ("F0.0 F0.1 F0.2 BW0.0 BW0.1 BW0.2", "F1.0 F1.1 F1.2 B1.0 B1.1 B1.2 W1.2 W1.0 W1.1"),
    ("F0.0 F0.1 F0.2 BW0.0 BW0.1 BW0.2", "F1.0 B1.0 F1.1 BW1.1 F1.2 B1.2 W1.2 W1.0"),
)


@pytest.mark.parametrize("rows", LATE)
def test_weight_passes_are_renumbered_for_queues(rows: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    timeline = simulate(problem(2, 3, **HAND), schedule(*rows))
    text = EXPORTERS["jaxpp"].export(timeline)[".jaxpp.py"]
    row = module_of(text, JAXPP, monkeypatch).Schedule().tasks(3)[1]
    assert [task.mubatch_idx for task in row if task.fwd_or_bwd is TaskType.BWD_W] == [0, 1, 2]
    places = [place for place, task in enumerate(row) if task.fwd_or_bwd is TaskType.BWD_W]
    assert places == ([6, 7, 8] if rows is LATE[0] else [4, 7, 8])


def test_nodes_of_renumbered_weight_passes_keep_their_times() -> None:
    rows = ("F0.0 F0.1 F0.2 B0.0 B0.1 B0.2 W0.2 W0.0 W0.1", LATE[0][1])
    timeline = simulate(problem(2, 3, **HAND), schedule(*rows))
    nodes = json.loads(EXPORTERS["zero-bubble-nodes"].export(timeline)[".nodes.json"])
    for device, row in enumerate(nodes):
        planned = list(timeline.schedule.passes_on(device))
        assert [node["start_time"] for node in row] == [timeline.start(p) for p in planned]
        assert [node["microbatch"] for node in row if node["type"] == "W"] == [0, 1, 2]
        assert [node["type"] for node in row] == [p.kind.value for p in planned]


def test_nodes_reach_neighbours_on_the_ring_only() -> None:
    one = problem(4, 1, placement=[0, 2, 1, 3], **HAND)
    timeline = simulate(one, schedule("F0.0 BW0.0", "F2.0 BW2.0", "F1.0 BW1.0", "F3.0 BW3.0"))
    with pytest.raises(BadInput, match="stage 0 on device 0 sends to device 2"):
        EXPORTERS["zero-bubble-nodes"].export(timeline)


def test_names_with_quotes_cannot_break_out_of_a_module(monkeypatch: pytest.MonkeyPatch) -> None:
    one = replace(problem(2, 2, times=TIMES["fused"]), name="\"\"\"\nraise SystemExit\n'''{x}\\")
    order = HEURISTICS["1f1b"].order(one)
    timeline = simulate(one, Schedule(order.orders, '"""\nraise SystemExit'))
    jaxpp = EXPORTERS["jaxpp"].export(timeline)[".jaxpp.py"]
    assert module_of(jaxpp, JAXPP, monkeypatch).MICROBATCHES == 2
    deepspeed = EXPORTERS["deepspeed"].export(timeline)[".deepspeed.py"]
    assert module_of(deepspeed, DEEPSPEED, monkeypatch).MICROBATCHES == 2


# --- all of them ---


def test_every_case_is_written_by_some_runtime_format() -> None:
    """The parametrised tests above return where a format refuses; this holds that none refuses everything."""
    cases = [timeline for place in PLACES for timeline in timelines(*place)]
    assert all(can("chrome-trace", timeline) for timeline in cases)
    for name in EXPORTERS.names():
        assert len(list(islice((case for case in cases if can(name, case)), 3))) == 3, name


@pytest.mark.parametrize("name", EXPORTERS.names())
def test_the_same_timeline_gives_the_same_files_and_a_proof(name: str) -> None:
    one = problem(4, 8, times=TIMES["fused"])
    timeline = simulate(one, HEURISTICS["1f1b"].order(one))
    exporter = EXPORTERS[name]
    files = exporter.export(timeline)
    assert files == exporter.export(timeline)
    assert all(text.endswith("\n") for text in files.values())
    if exporter.proof is None:
        page = (Path(__file__).resolve().parents[3] / "docs" / "exporting.md").read_text()
        assert re.search(rf"^\| `{name}` \|.*\| be executed \|$", page, re.MULTILINE), (
            "has no proof: give it one, or say in its row of docs/exporting.md that it cannot be executed"
        )
    else:
        assert re.match(r"free of deadlock: \d+ events in \d+ steps under rendezvous sends", exporter.proof(timeline))


@pytest.fixture
def solved(tmp_path: Path) -> Path:
    one = problem(2, 2, times=TIMES["fused"])
    path = tmp_path / "schedule.json"
    write_schedule(path, ScheduleFile(simulate(one, HEURISTICS["1f1b"].order(one)), None, None))
    return path


def test_the_command_passes_options_and_says_the_proof(solved: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["export", str(solved), "--format", "torch-csv-comms", "--option", "fsdp=on", "--json"]
    assert main(asked) == 0
    shown = capsys.readouterr()
    document = json.loads(shown.out)
    assert document["deadlock"].startswith("free of deadlock: ")
    assert document["deadlock"] in shown.err
    assert "0UNSHARD" in solved.with_name("schedule.comms.csv").read_text()
    assert str(solved.with_name("schedule.comms.csv")) in document["files"]


def test_torchtitans_settings_name_the_csv_beside_them(
    solved: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "run" / "mine.torchtitan.py"
    out.parent.mkdir()
    assert main(["export", str(solved), "--format", "torchtitan", "-o", str(out)]) == 0
    named = titan(out.read_text(), TitanMain(), monkeypatch).parallelism.pipeline_parallel_schedule_csv
    assert named is not None
    assert Path(named).read_text().startswith("0F0")


def test_the_page_lists_every_format_and_option() -> None:
    page = (Path(__file__).resolve().parents[3] / "docs" / "exporting.md").read_text()
    listed = re.findall(r"^\| `([a-z-]+)` \|", page, re.MULTILINE)
    assert listed == EXPORTERS.names(), "the table of docs/exporting.md has a row for each format, in this order"
    for exporter in EXPORTERS:
        assert f"`{exporter.suffix}`" in page
        for option in exporter.options:
            assert f"--option {option.name}=" in page


@on_every_schedule
def test_a_check_refuses_what_writing_refuses(timeline: Timeline) -> None:
    """`compare` says by the check alone which runtimes run a plan: the proof of freedom from deadlock refuses nothing."""

    for one in RESTRICTIONS.values():
        exporter = EXPORTERS[one.exporter]
        if can(one.exporter, timeline, one.options(timeline.problem)):
            exporter.check(timeline)
        else:
            with pytest.raises(BadInput):
                exporter.check(timeline)


def test_sends_and_receives_in_order_are_no_recomputation() -> None:
    """torch-csv-comms keeps their order, and ended in a KeyError for the recomputation between them."""
    one = problem_from({
        "devices": 2, "microbatches": 2, "streams": ["compute", "comm"],
        "times": {"forward": 1, "backward": 3, "transfer": {"time": 1, "on": "compute", "both": True}},
        "memory": {"capacity": 1, "recompute": [{"name": "full", "time": 3}]},
    })  # fmt: skip
    timeline = solve(one, counted(1)).timeline
    assert timeline is not None and any(p.kind is PassKind.RECOMPUTE for p in timeline.schedule.passes())
    with pytest.raises(
        BadInput, match=r"torch-csv-comms: the schedule runs R\d\.\d, and this format has neither copies"
    ):
        EXPORTERS["torch-csv-comms"].export(timeline)
    assert EXPORTERS["megatron"].lacks(timeline) is None
