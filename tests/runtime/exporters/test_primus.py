"""Primus' tables: what the written module gives is the schedule, and ranks meet in every batch of sends and receives."""

from __future__ import annotations

import enum
import sys
import types
from collections import Counter
from dataclasses import dataclass
from random import Random
from typing import Any

import pytest

from heuristics.catalogue import HEURISTICS
from pipesched.errors import BadInput
from pipesched.problem.passes import OFFLOAD
from pipesched.schedule.timeline import Timeline
from pipesched.simulation.simulator import simulate
from runtime.exporters.catalogue import EXPORTERS
from tests.support.makers import problem, random_order, schedule

FuncType = enum.Enum("FuncType", "F B W BW FB SF SB RF RB O R")
TRANSFERS = ("SF", "SB", "RF", "RB")
SPLIT = {"forward": 2, "backward": 2, "weight": 1, "transfer": 1}
V, LOOP = {"placement": "v-shape"}, {"placement": "interleaved", "chunks": 2}


@dataclass
class SchedulerNode:
    """The fields of Primus' class of this name."""

    func_type: Any
    mini_batch: int
    chunk: int
    args: dict[str, Any]


class Algorithm:
    """As much of Primus' PipelineScheduleAlgo as its subclasses have."""

    def __init__(self, pp_size: int, vpp_size: int, micro_batches: int) -> None:
        self.sizes = pp_size, vpp_size, micro_batches


def planned(timeline: Timeline, monkeypatch: pytest.MonkeyPatch, **told: bool) -> tuple[str, Any]:
    """The algorithm that the written module puts in place, as Primus makes it, and its name."""
    factory: Any = types.ModuleType("schedule_table_factory")
    factory.pp_algorithm_map = {}
    root = "primus.core.pipeline_parallel.scheduler"
    base, nodes, package = (types.ModuleType(name) for name in ("base", "scheduler_node", "scheduler"))
    vars(base).update(PipelineScheduleAlgo=Algorithm)
    vars(nodes).update(FuncType=FuncType, SchedulerNode=SchedulerNode)
    vars(package).update(schedule_table_factory=factory)
    for name, module in {
        "": package, ".schedule_table_factory": factory, ".algorithms.base": base, ".scheduler_node": nodes,
    }.items():  # fmt: skip
        monkeypatch.setitem(sys.modules, root + name, module)
    for name in ("primus", "primus.core", "primus.core.pipeline_parallel", f"{root}.algorithms"):
        monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
    exec(EXPORTERS["primus"].export(timeline)[".primus.py"], {})
    ((name, algorithm),) = factory.pp_algorithm_map.items()
    one = timeline.problem
    sizes = one.devices, one.placement.stages // one.devices, one.microbatches
    with pytest.raises(ValueError, match="this schedule is for"):
        algorithm(sizes[0], sizes[1], sizes[2] + 1, **told)
    return name, algorithm(*sizes, **told)


def computed(timeline: Timeline, table: list[list[Any]]) -> list[list[str]]:
    """What each rank runs but for transfers, with the stages of the problem."""
    placement = timeline.problem.placement
    return [
        [
            f"{node.func_type.name}{placement.stages_of[rank][node.chunk]}.{node.mini_batch}"
            for node in row
            if node.func_type.name not in TRANSFERS
        ]
        for rank, row in enumerate(table)
    ]


def meetings(table: list[list[Any]]) -> int:
    """Transfers made by ranks that wait in each batch, as Primus forms them, until all of it has met its other end."""
    programs: list[list[list[Any]]] = []
    for row in table:
        programs.append([])
        last: Any = None
        for node in row:
            if node.func_type.name in TRANSFERS:
                if last is not None and last.args["time_step"] == node.args["time_step"]:
                    programs[-1][-1].append(node)
                else:
                    programs[-1].append([node])
            last = node if node.func_type.name in TRANSFERS else None
    made = 0
    while any(programs):
        slot = min(program[0][0].args["time_step"] for program in programs if program)
        batch = [
            node for program in programs if program and program[0][0].args["time_step"] == slot for node in program[0]
        ]
        ends = [
            Counter(
                (
                    node.args["from_pp_rank"],
                    node.args["to_pp_rank"],
                    node.mini_batch,
                    node.func_type.name[1],
                    chunk(node),
                )
                for node in batch
                if node.func_type.name[0] == word
            )
            for word in "SR"
        ]
        assert ends[0] == ends[1] and max(ends[0].values()) == 1
        made += len(batch) // 2
        programs = [p[1:] if p and p[0][0].args["time_step"] == slot else p for p in programs]
    return made


def chunk(node: Any) -> tuple[int, int]:
    """Of the sender and of the receiver."""
    if node.func_type.name[0] == "S":
        return node.chunk, node.args["send_to_chunk"]
    return node.args["recv_from_chunk"], node.chunk


def needed_first(timeline: Timeline, table: list[list[Any]]) -> None:
    """A receive stands before the pass that takes its tensor, a send behind the one that yields it."""
    for row in table:
        for at, node in enumerate(row):
            kinds = {"SF": ("F",), "SB": ("B", "BW"), "RF": ("F",), "RB": ("B", "BW")}.get(node.func_type.name)
            if kinds is not None:
                (pass_at,) = (
                    other
                    for other, one in enumerate(row)
                    if one.func_type.name in kinds and (one.mini_batch, one.chunk) == (node.mini_batch, node.chunk)
                )
                assert (pass_at < at) is (node.func_type.name[0] == "S")


@pytest.mark.parametrize(
    ("name", "keys", "algorithm"),
    [
        ("zb-h1", {}, "zero-bubble"), ("1f1b", {}, "zero-bubble"), ("zbv", V, "v-half"), ("v-min", V, "v-half"),
        ("interleaved-1f1b", LOOP, "1f1b-interleaved"), ("", V, "v-half"), ("", {}, "zero-bubble"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("devices", [2, 3, 4])
def test_the_table_is_the_schedule_and_ranks_meet(
    name: str, keys: dict[str, Any], algorithm: str, devices: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = problem(devices, 6, times=SPLIT, **keys)
    rows = HEURISTICS[name].order(one) if name else random_order(one, Random(devices))
    timeline = simulate(one, rows)
    if not _in_one_order(timeline):
        with pytest.raises(BadInput, match="reads data in one order"):
            EXPORTERS["primus"].export(timeline)
        return
    found, planner = planned(timeline, monkeypatch)
    table = planner.generate_schedule_table()
    assert found == algorithm and planner.last_pp_stage_rank() == one.placement.stage_device[-1]
    label = _labels(timeline)
    expected = [
        [str(q._replace(microbatch=label[q.microbatch])) for q in timeline.schedule.passes_on(d)]
        for d in range(devices)
    ]
    assert computed(timeline, table) == expected
    assert meetings(table) == 2 * (one.placement.stages - 1) * one.microbatches
    needed_first(timeline, table)


def _labels(timeline: Timeline) -> dict[int, int]:
    entering = [q.microbatch for q in timeline.schedule.passes() if q.stage == 0 and q.kind.value == "F"]
    return {microbatch: number for number, microbatch in enumerate(entering)}


def _in_one_order(timeline: Timeline) -> bool:
    last = timeline.problem.placement.stages - 1
    leaving = [q.microbatch for q in timeline.schedule.passes() if q.stage == last and q.kind.value == "F"]
    return leaving == list(_labels(timeline))


def test_copies_stand_where_they_end_and_begin(monkeypatch: pytest.MonkeyPatch) -> None:
    memory = {"activation": 4, "offload": {"out": 1, "in": 1}, "decide": {"offload": "free"}}
    one = problem(2, 2, times=SPLIT, memory=memory, **V)
    rows = (
        "F0.1 O0.1 F0.0 F3.1 B3.1 W3.1 F3.0 L0.1 B3.0 W3.0 B0.1 W0.1 BW0.0",
        "F1.1 F2.1 F1.0 F2.0 B2.1 W2.1 B2.0 W2.0 BW1.1 B1.0 W1.0",
    )
    timeline = simulate(one, schedule(*rows))
    with pytest.raises(ValueError, match="give --offload"):
        planned(timeline, monkeypatch)
    _, planner = planned(timeline, monkeypatch, offload=True)
    table, label = planner.generate_schedule_table(), _labels(timeline)
    moved = [p for p in timeline.schedule.passes() if p.kind is OFFLOAD]
    assert moved
    for rank, row in enumerate(table):
        marked = {(n.chunk, n.mini_batch) for n in row if n.args.get("should_offload")}
        own = [p for p in moved if one.placement.stage_device[p.stage] == rank]
        assert marked == {(one.placement.chunk(p.stage), label[p.microbatch]) for p in own}
        names = computed(timeline, table)[rank]
        for p in own:
            number = label[p.microbatch]
            order = [names.index(f"{word}{p.stage}.{number}") for word in ("F", "O", "R")]
            backward = next(
                names.index(f"{w}{p.stage}.{number}") for w in ("B", "BW") if f"{w}{p.stage}.{number}" in names
            )
            assert order == sorted(order) and order[-1] < backward
    assert meetings(table) == 2 * (one.placement.stages - 1) * one.microbatches


@pytest.mark.parametrize(
    ("keys", "rows", "reason"),
    [
        ({"placement": [0, 1, 0]}, ("F0.0 F2.0 F0.1 F2.1 BW2.0 BW2.1 BW0.0 BW0.1", "F1.0 F1.1 BW1.0 BW1.1"), "builds a loop"),
        (LOOP, ("F0.0 F2.0 B2.0 W2.0 B0.0 W0.0", "F1.0 F3.0 B3.0 W3.0 B1.0 W1.0"), "splits no backward in a loop"),
        ({}, ("F0.0 F0.1 BW0.1 BW0.0", "F1.1 BW1.1 F1.0 BW1.0"), "reads data in one order"),
    ],
)  # fmt: skip
def test_what_primus_cannot_run_is_refused(keys: dict[str, Any], rows: tuple[str, ...], reason: str) -> None:
    microbatches = 1 + max(number_of(word) for row in rows for word in row.split())
    one = problem(2, microbatches, times=SPLIT, **keys)
    with pytest.raises(BadInput, match=reason):
        EXPORTERS["primus"].export(simulate(one, schedule(*rows)))


def number_of(word: str) -> int:
    return int(word.partition(".")[2])
