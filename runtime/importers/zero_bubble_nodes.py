"""Importer of the zero-bubble repository's schedules: a list of nodes for each device, as JSON."""

from __future__ import annotations

from typing import Any

from pipesched.errors import BadInput
from pipesched.files.exact_numbers import read_json
from pipesched.problem.passes import Pass, PassKind, Slot
from runtime.importers.catalogue import IMPORTERS, Importer, Orders

# A node's stage is `layer_group_idx`; older files have one stage a device and leave it out, `stage` being the device.
_STAGE = ("layer_group_idx", "stage")
_MICROBATCH = ("microbatch", "minibatch")
_COMMUNICATION = ("SEND", "RECV", "POST_VALIDATION")


def _recognises(text: str) -> bool:
    return text.lstrip().startswith("[")


def _read(text: str) -> Orders:
    document = read_json(text, "node list")
    rows = document if isinstance(document, list) else []
    if rows and all(isinstance(row, dict) for row in rows):
        rows = _by_device(rows)
    if not rows or not all(isinstance(row, list) for row in rows):
        raise BadInput("found no lists of nodes; allowed: one list a device of objects with type, stage, microbatch")
    mistakes: list[str] = []
    orders: Orders = []
    for device, row in enumerate(rows):
        order: list[Slot] = []
        for place, node in enumerate(row):
            try:
                if not _moves_tensors(node):
                    order.append((_pass(node),))
            except (KeyError, TypeError, ValueError):
                allowed = "type (F, B, W or BW), microbatch, and layer_group_idx or stage"
                mistakes.append(f"device {device}, node {place}: found {node!r}; allowed: an object with {allowed}")
        orders.append(order)
    if mistakes:
        raise BadInput(*mistakes)
    return orders


def _by_device(nodes: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """Divide one flat list by `stage`, which means the device in that repository; 0 for a node without it."""
    devices = sorted({node.get("stage", 0) for node in nodes})
    return [[node for node in nodes if node.get("stage", 0) == device] for device in devices]


def _moves_tensors(node: dict[str, Any]) -> bool:
    return str(node["type"]).startswith(_COMMUNICATION)


def _pass(node: dict[str, Any]) -> Pass:
    stage = next(node[key] for key in _STAGE if node.get(key) is not None)
    microbatch = next(node[key] for key in _MICROBATCH if node.get(key) is not None)
    return Pass(PassKind(node["type"]), int(stage), int(microbatch))


IMPORTERS.register(
    Importer(
        name="zero-bubble-nodes",
        description="the zero-bubble repository's list of scheduled nodes as JSON",
        recognises=_recognises,
        read=_read,
    )
)
