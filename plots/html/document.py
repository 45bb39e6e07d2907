"""The interactive chart's data for a timeline, as a document of plain numbers and texts; read by `chart/`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from matplotlib.colors import to_hex

from pipesched.deadline import SHORT, asking
from pipesched.problem.features.device_resources import SENDING
from pipesched.problem.pass_names import microbatch_count, microbatch_number, piece_number
from pipesched.problem.passes import F, Task
from pipesched.problem.problem import Problem
from pipesched.problem.quantities import MemorySteps, Ticks
from pipesched.schedule.drawing.boxes import SIDE_LANE, Box, boxes_of
from pipesched.schedule.drawing.colours import NAMES, TRANSFER, ink_on, shade, shade_names, shade_numbers
from pipesched.schedule.memory_elsewhere import host_steps
from pipesched.schedule.metrics import memory_steps
from pipesched.schedule.timeline import Timeline
from pipesched.simulation.critical_path import critical_path
from pipesched.simulation.precedence_graph import Graph
from plots.drawing.memory_marks import without_notches


def document(timeline: Timeline, critical: bool = True) -> dict[str, Any]:
    """Return all data of the chart as JSON values; times in ticks of `tick` file units each, memory in the file's unit.

    - `problem`, `schedule`: names; `unit`: of time; `end`: of the last pass; `microbatches`: how many.
    - `lanes`: the streams, first the one that computes, each with its height relative to the first's (`share`).
    - `legend`: the kinds of pass that occur, with name and colour; `shades`: what their shades mean, strong to pale.
    - `boxes`: a row a device of numbers, four a box in the order of starts: ticks since the start of the box before,
      ticks it lasts, micro-batch, and its place in `styles`.
    - `styles`: of a box `pass` (`F0`), `what` it does in words, `colour`, `ink`, `lane`, `half` of that lane (0: all
      of it, 1: the upper, 2: the lower, of an overlapped block), `task`, its name where the pass has several, and
      `piece` of its micro-batch where there are several.
    - `critical`: the critical path, two numbers a box: device and place in the device's row. Empty if not asked for.
    - `waits`: why there is idle time before a box, as `waits` says; nothing if `critical` was not asked for.
    - `memory`: its `unit`; in `steps` a row a device, two numbers a step: ticks since the step before and the level
      from then on, including `static`, the memory always in use; `capacity` of each device, null if unlimited;
      `hosts`: for each host `device`, the first of its devices, `devices`, their number, and its own `steps`.
    """
    problem = timeline.problem
    rows, styles, places = _boxes(timeline)
    steps = [list(dict.fromkeys(without_notches(memory_steps(timeline, d)))) for d in range(problem.devices)]
    capacity = [None if c is None else c + problem.static[d] for d, c in enumerate(problem.room)]
    unit = float(problem.resolution)
    path = critical_path(timeline) if critical else []
    return {
        "problem": problem.name,
        "schedule": timeline.schedule.name,
        "tick": float(problem.tick),
        "unit": problem.time_unit,
        "end": int(timeline.reach[1].max(initial=0)),
        "microbatches": microbatch_count(problem),
        "lanes": [{"stream": name, "share": SIDE_LANE if n else 1} for n, name in enumerate(problem.streams)],
        "legend": _legend(timeline),
        "shades": shade_names(problem),
        "styles": styles,
        "boxes": rows,
        "critical": [number for tasks in path for task in tasks for number in places[task]],
        "waits": waits(timeline, places) if critical else [],
        "memory": {
            "unit": problem.memory_unit,
            "steps": [
                _paired([(tick, level + static) for tick, level in one], unit)
                for static, one in zip(problem.static, steps, strict=True)
            ],
            "capacity": [None if c is None else _short(c * unit) for c in capacity],
            "static": [_short(static * unit) for static in problem.static],
            "hosts": [
                {"device": devices[0], "devices": len(devices), "steps": _paired(steps, unit)}
                for devices, steps in host_steps(timeline)
            ],
        },
    }


def _boxes(timeline: Timeline) -> tuple[list[list[int]], list[dict[str, Any]], dict[Task, tuple[int, int]]]:
    """Return `boxes` and `styles` of the document, and for each task the place of its box.

    The place is the device, and the position in that device's row.
    """
    problem = timeline.problem
    shade_of, count = shade_numbers(problem), len(shade_names(problem))
    rows: list[list[int]] = [[] for _ in range(problem.devices)]
    last = [0] * problem.devices
    styles: list[dict[str, Any]] = []
    number_of: dict[tuple[object, ...], int] = {}
    places: dict[Task, tuple[int, int]] = {}
    for box in asking(sorted(boxes_of(timeline), key=lambda box: (box.start, box.end)), SHORT):
        device = box.device
        half = 0 if not box.overlapped else 1 if box.of.kind is F else 2  # a block is a forward above a backward
        key = box.of.kind, box.of.stage, box.part, half
        if key not in number_of:
            number_of[key] = len(styles)
            styles.append(_style(problem, box, shade_of[box.of.stage], count, half))
        if device == problem.device(box.of):
            places[Task(box.of, box.part)] = device, len(rows[device]) // 4
        rows[device] += [
            box.start - last[device],
            box.end - box.start,
            microbatch_number(problem, box.of),
            number_of[key],
        ]
        last[device] = box.start
    return rows, styles, places


def _style(problem: Problem, box: Box, number: int, count: int, half: int) -> dict[str, Any]:
    colour = TRANSFER if box.sends else shade(box.of.kind, number, count)
    return {
        "pass": f"{box.of.kind.value}{box.of.stage // problem.chain_arcs.pieces}",
        "what": "Transfer" if box.sends else NAMES[box.of.kind],
        "colour": to_hex(colour),
        "ink": ink_on(colour),
        "lane": problem.streams.index(box.stream),
        "half": half,
        "task": box.name,
        "piece": piece_number(problem, box.of),
    }


def _paired(steps: list[tuple[Ticks, MemorySteps]], unit: float) -> list[float]:
    """Return (tick, level) steps as alternating numbers: ticks since the previous step, and the level times `unit`."""
    ticks = [tick for tick, _ in steps]
    since = [tick - before for tick, before in zip(ticks, [0, *ticks], strict=False)]
    return [number for tick, (_, level) in zip(since, steps, strict=True) for number in (tick, _short(level * unit))]


def _short(number: float) -> float:
    """Return a number without digits that only floating point brought."""
    return float(f"{number:.12g}")


def _legend(timeline: Timeline) -> list[dict[str, str]]:
    kinds = {p.kind for p in timeline.schedule.passes()}
    legend = [{"name": name, "colour": to_hex(shade(kind, 0, 1))} for kind, name in NAMES.items() if kind in kinds]
    if any(task.name == SENDING for tasks in timeline.problem.network.tasks.values() for task in tasks):
        legend.append({"name": "Transfer to another device", "colour": to_hex(TRANSFER)})
    return legend


def waits(timeline: Timeline, places: Mapping[Task, tuple[int, int]]) -> list[list[int]]:
    """Return by device numbers that say why its stream is idle before a box: three for each such box.

    They are the position of the box in the device's row, and the device and position of the box that it waits for;
    `places` has (device, position) by task. A box is left out if it starts later than all that it waits for, or waits
    only for the task before it on its stream.
    """
    graph = Graph(timeline.problem, timeline.schedule)
    tasks, ticks = graph.tasks, graph.ticks
    start = [timeline.starts[of[0]] for of in tasks]
    rows: list[list[int]] = [[] for _ in range(timeline.problem.devices)]
    for node, before in asking(enumerate(graph.waits), SHORT):
        binding = [(lag, one) for one, lag in before if start[one] + ticks[one] + lag == start[node]]
        device = timeline.problem.device(tasks[node][0].of)
        far = [(lag, one) for lag, one in binding if lag or device not in timeline.problem.devices_of(tasks[one][0])]
        # Where the task before it on its stream ends just then there is no gap.
        if far and len(far) == len(binding) and start[node]:
            cause = places[tasks[max(far)[1]][0]]
            for task in tasks[node]:
                rows[device] += [places[task][1], *cause]
    return rows
