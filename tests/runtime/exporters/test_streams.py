"""Orders of tasks on streams: two formats hold them, the others refuse in a line."""

from __future__ import annotations

import json
from random import Random
from typing import Any

import pytest

from pipesched.errors import BadInput
from pipesched.files.problem_file import problem_from
from pipesched.schedule.timeline import Timeline
from pipesched.simulation.simulator import simulate
from runtime.exporters.catalogue import EXPORTERS
from runtime.importers.catalogue import IMPORTERS
from runtime.lowering.stream_programs import stream_programs
from runtime.lowering.stream_transfers import proved_streams, transfer_rows
from solver.solve import solve
from tests.support.counted import counted
from tests.support.makers import random_order
from tests.support.task_brute_force import drawn, game_of

TASKS = {
    "forward": [{"name": "attn", "time": 3}, {"name": "dispatch", "on": "comm", "time": 2}, {"name": "mlp", "time": 3}],
    "backward": [{"name": "mlp", "time": 4}, {"name": "combine", "on": "comm", "time": 3}],
    "weight": [{"name": "mlp-w", "time": 2, "after": "mlp"}],
    "layers": 2,
}


def timeline(seed: int, of_tasks: bool = True) -> Timeline:
    rng = Random(seed)
    one = problem_from(
        {"devices": 2, "microbatches": 2, "streams": ["compute", "comm"], "tasks": TASKS,
         "times": {"transfer": {"time": 1, "on": "comm"}}}
    )  # fmt: skip
    orders = random_order(one, rng)
    return simulate(one, drawn(one, rng, orders) if of_tasks else orders)


@pytest.mark.parametrize("exporter", list(EXPORTERS), ids=lambda exporter: exporter.name)
def test_a_format_of_whole_passes_refuses_orders_of_tasks(exporter: Any) -> None:
    if exporter.name in ("program", "chrome-trace"):
        assert exporter.streams and exporter.export(timeline(1))
        return
    with pytest.raises(BadInput, match="orders whole passes only; chrome-trace, program can express it") as caught:
        exporter.export(timeline(1))
    assert "\n" not in str(caught.value)


def program(of: Timeline) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(EXPORTERS["program"].export(of)[".program.json"])
    return found


@pytest.mark.parametrize("seed", range(8))
def test_a_program_of_streams_waits_for_all_that_a_task_needs(seed: int) -> None:
    one = timeline(seed, of_tasks=seed % 2 == 0)
    text, lags = one.problem.task_text, game_of(one.problem, one.schedule).lags
    needs = {*lags, *((wait.before, wait.after) for wait in one.schedule.waits)}
    said = program(one)
    ran: dict[tuple[int, str], list[str]] = {}
    waits: dict[str, list[str]] = {}
    for device, streams in enumerate(said["streams"]):
        for stream, steps in streams.items():
            for step in steps:
                name = f"{step['do']}{step['stage']}.{step['microbatch']}/{step['task']}"
                ran.setdefault((device, stream), []).append(name)
                waits[name] = step["waits"]
    on = {name: where for where, names in ran.items() for name in names}
    assert set(on) == {text(task) for task in one.starts}
    for names in ran.values():
        starts = {text(task): start for task, start in one.starts.items()}
        assert sorted(names, key=starts.__getitem__) == names
    for task in one.starts:
        needed = {text(before) for before, after in needs if after == task}
        assert set(waits[text(task)]) == {name for name in needed if on[name] != on[text(task)]}
    assert ("programs" in said) is (seed % 2 == 1)
    assert said["deadlock"].startswith("free of deadlock")


def run_to_the_end(said: dict[str, Any], rng: Random) -> list[str]:
    """The tasks in the order in which an executor ran them that knows the file alone; both ends of a transfer block."""
    queues = [list(steps) for streams in said["streams"] for steps in streams.values()]
    transfers = [list(row) for row in said["transfers"]]
    ended: list[str] = []
    arrived: set[tuple[str, str]] = set()
    here = {(step["of"], step["for"]) for row in said["transfers"] for step in row}
    while any(queues) or any(transfers):
        moves: list[Any] = []
        for queue in filter(None, queues):
            step = queue[0]
            name = f"{step['do']}{step['stage']}.{step['microbatch']}" + (step["task"] and f"/{step['task']}")
            if all((w, name) in arrived if (w, name) in here else w in ended for w in step["waits"]):
                moves.append((queue, name))
        for device, row in enumerate(transfers):
            send = row[0] if row else {"do": ""}
            if send["do"] == "SEND" and send["of"] in ended:
                far = transfers[send["peer"]]
                if far and (far[0]["do"], far[0]["of"], far[0]["for"], far[0]["peer"]) == (
                    "RECV",
                    send["of"],
                    send["for"],
                    device,
                ):
                    moves.append((row, far, (send["of"], send["for"])))
        assert moves, "comes to a halt"
        move = rng.choice(moves)
        for queue in move[:-1]:
            queue.pop(0)
        if isinstance(move[-1], str):
            ended.append(move[-1])
        else:
            arrived.add(move[-1])
    return ended


def offloading() -> Timeline:
    document = {
        "devices": 2, "microbatches": 4, "times": {"forward": 2, "backward": 4, "transfer": 1}, "streams": ["compute", "d2h", "h2d"],
        "memory": {"capacity": 2, "activation": 1, "offload": {"out": 2, "in": 2, "on": ["d2h", "h2d"]},
                   "recompute": [{"name": "full", "time": 2, "keeps": 0}], "decide": {"offload": "always"}},
    }  # fmt: skip
    return solve(problem_from(document), counted(2)).timeline


@pytest.mark.parametrize("seed", range(9))
def test_an_executor_of_streams_needs_the_file_alone(seed: int) -> None:
    one = offloading() if seed == 8 else timeline(seed)
    said, again = program(one), Random(seed)
    for _ in range(5):
        assert len(run_to_the_end(said, again)) == len(one.starts)
    between = {(step["tensor"], step["of"][0], step["for"][0]) for row in said["transfers"] for step in row}
    own = {(None, a.of.kind.value[0], b.of.kind.value[0]) for a, b in one.schedule.waits}
    assert between - own == {("activation", "F", "F"), ("gradient", "B", "B")}
    assert "one transfer at a time on each device" in said["deadlock"]


def test_a_cycle_of_transfers_is_named() -> None:
    one = timeline(0)
    streams = stream_programs(one)
    rows = transfer_rows(one, streams)
    assert proved_streams("program", one, streams, rows)
    turned = (rows[0], rows[1][::-1])
    with pytest.raises(BadInput, match=r"cannot be run to its end: .*transfer "):
        proved_streams("program", one, streams, turned)
    with pytest.raises(BadInput, match="is not on the two devices"):
        proved_streams("program", one, streams, (rows[0], rows[1][1:]))


def test_a_program_of_streams_alone_is_not_an_order_of_passes() -> None:
    text = EXPORTERS["program"].export(timeline(0))[".program.json"]
    with pytest.raises(BadInput, match="found streams alone"):
        IMPORTERS["program"].read(text)
