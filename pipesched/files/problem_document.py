"""A problem as its file writes it: the way back from `Problem` to keys and numbers."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from pipesched.files.exact_numbers import as_decimal
from pipesched.problem.problem import Problem


def problem_document(problem: Problem) -> dict[str, Any]:
    """The problem as a problem file writes it; ValueError where it has passes of several tasks."""
    if problem.costs.parts:
        raise ValueError("passes of several tasks cannot be written to a problem file")
    costs, memory, where = problem.costs, problem.memory, problem.placement
    document: dict[str, Any] = {"name": problem.name, "devices": problem.devices, "microbatches": problem.microbatches}
    document["placement"] = where.name if where.name != "explicit" else list(where.stage_device)
    if where.name in ("interleaved", "wave"):
        document["chunks"] = where.stages // where.devices
    document["time_unit"] = problem.time_unit
    times = {"forward": costs.forward, "backward": costs.backward, "weight": costs.weight}
    if costs.weight is not None:
        times["fused"] = costs.fused
    times |= {"transfer": costs.transfer, "overlapped": costs.overlapped}
    document["times"] = {key: _numbers(values, problem.tick) for key, values in times.items() if values is not None}
    document["memory"] = {
        "unit": memory.unit,
        "activation": _numbers(memory.activation, memory.resolution),
        "freed_by_backward": _numbers(memory.freed, memory.resolution),
    }
    limits = [c for c in memory.capacity if c is not None]
    if limits:
        if len(limits) < problem.devices:
            raise ValueError("a problem file limits the memory of every device or of none")
        whole = [room + memory.held(device) for device, room in enumerate(limits)]
        document["memory"]["capacity"] = _numbers(whole, memory.resolution)
    if memory.static:
        document["memory"]["static"] = _numbers(memory.static, memory.resolution)
    document["objective"] = problem.objective.value
    return document


def _numbers(values: Sequence[int], step: Fraction) -> object:
    """One number where all are alike, else the list."""
    numbers = [as_decimal(x * step) for x in values]
    return numbers[0] if len(set(numbers)) == 1 else numbers
