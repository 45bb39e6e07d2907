"""Report of `layers`: a plan's layers as a table, as JSON, and as a part of a plan file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from commands.shared.tables import Column, table
from pipesched.files.layers_text import layers_text, number_text
from pipesched.layers.layer import LayerType
from pipesched.layers.plan_problem import PlanProblem
from pipesched.problem.formatting import plain

_COLUMNS = ("layer", "count", "F", "B", "W", "memory", "activation", "recompute")


def show(plan: PlanProblem) -> None:
    """Print a row for each run of equal layers, then capacities, the transfer time and the assumptions.

    Capacities are left out if there is no limit, the transfer time if it differs between devices.
    """
    units = f"{plan.time_unit or 'times as in the file'}, {plan.cluster.memory_unit}"
    columns = [Column(name, name not in ("layer", "recompute"), 1 if name == "recompute" else 0) for name in _COLUMNS]
    table(f"{plan.name}: layers ({units})", columns, [_row(layer) for layer in plan.model.layers])
    if plan.cluster.capacity is not None:
        rooms = sorted({plain(float(room)) for room in plan.cluster.capacity})
        print(f"capacity of a device: {', '.join(rooms)} {plan.cluster.memory_unit}")
    if not plan.cluster.links:
        print(f"transfer: {plain(float(plan.cluster.transfer))} {plan.time_unit}".rstrip())
    for line in plan.assumptions:
        print(f"assumed: {line}")


def _row(layer: LayerType) -> list[str]:
    modes = [
        f"{mode.name} +{plain(float(mode.time))}, keeps {100 * float(mode.keeps):.1f} %" for mode in layer.recompute
    ]
    weight = "" if layer.weight is None else plain(float(layer.weight))
    amounts = [plain(round(float(one), 4)) for one in (layer.memory, layer.activation)]
    times = [plain(float(layer.forward)), plain(float(layer.backward)), weight]
    return [layer.name, str(layer.count), *times, *amounts, "; ".join(modes)]


def document(plan: PlanProblem, files: Sequence[Path]) -> dict[str, object]:
    """Return the object of `layers --json`: name, units, `layers`, `capacity`, `transfer`, assumptions and files.

    `layers` has an entry for each run of equal layers, with the keys of a plan file; `frozen` is True only if no
    gradient reaches it. Numbers are floats in the file's units. `capacity` is by device, None where unlimited;
    `transfer` is None where times differ between pairs of devices. Of a layer `weight` is None if its backward is never
    split, `fused` if that is `backward` + `weight`.
    """
    cluster = plan.cluster
    return {
        "name": plan.name,
        "time_unit": plan.time_unit,
        "memory_unit": cluster.memory_unit,
        "layers": [_document(layer) for layer in plan.model.layers],
        "capacity": None if cluster.capacity is None else [float(room) for room in cluster.capacity],
        "transfer": None if cluster.links else float(cluster.transfer),
        "assumptions": list(plan.assumptions),
        "files": [str(path) for path in files],
    }


def _document(layer: LayerType) -> dict[str, object]:
    return {
        "name": layer.name,
        "count": layer.count,
        "forward": float(layer.forward),
        "backward": float(layer.backward),
        "weight": None if layer.weight is None else float(layer.weight),
        "fused": None if layer.fused is None else float(layer.fused),
        "memory": float(layer.memory),
        "activation": float(layer.activation),
        "freed_by_backward": float(layer.freed_by_backward),
        "recompute": [
            {"name": mode.name, "time": float(mode.time), "keeps": float(mode.keeps)} for mode in layer.recompute
        ],
        "with_previous": layer.with_previous,
        "frozen": layer.forward_only,
    }


def text(plan: PlanProblem) -> str:
    """Return the part of a plan file that states the layers' costs as numbers, with assumptions as comments before it.

    Of memory it has capacity and unit, if there is a limit; of transfers the time, if it is the same between all
    devices.
    """
    lines = [f"# {line}" for line in plan.assumptions]
    lines += [f"time_unit: {plan.time_unit}"] if plan.time_unit else []
    written = "\n".join(lines) + "\n" if lines else ""
    cluster = plan.cluster
    if cluster.capacity is not None:
        rooms = sorted(set(cluster.capacity))
        listed = ", ".join(number_text(room, up=False) for room in cluster.capacity)
        capacity = number_text(rooms[0], up=False) if len(rooms) == 1 else f"[{listed}]"
        written += f"memory: {{capacity: {capacity}, unit: {cluster.memory_unit}}}\n"
    if not cluster.links:
        written += f"transfer: {number_text(cluster.transfer)}\n"
    return written + layers_text(plan.model.layers)
