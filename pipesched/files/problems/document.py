"""Writing of problems: from a `Problem` to the keys and numbers of a problem file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pipesched.files.exact_numbers import as_number, as_numbers
from pipesched.files.features.catalogue import FEATURES
from pipesched.files.limits import LARGEST
from pipesched.files.problems.pass_tasks import tasks_section
from pipesched.problem.passes import W
from pipesched.problem.placement import PLACEMENTS, Placement
from pipesched.problem.problem import Problem
from pipesched.problem.quantities import Ticks
from pipesched.problem.stage import Stage


def problem_document(problem: Problem) -> dict[str, Any]:
    """Return the problem as the document of a problem file; ValueError if a file cannot express it.

    Keys are those of docs/problem-file.md. Numbers are exact, in the file's units: decimals, or text such as `5/3`.
    """
    joined = [feature.joined for feature in FEATURES if feature.joined is not None]
    alone = problem
    for one in joined:
        alone = one.without(alone)
    document = _parts_document(alone)
    for one in joined:
        add_keys(document, one.written(problem))
    return document


def _parts_document(problem: Problem) -> dict[str, Any]:
    """Return the document of a problem whose features of the whole file (`Feature.joined`) are already taken out.

    Pieces, modules and the like are written by their features.
    """
    for feature in FEATURES:
        joined = feature.attached or feature.several
        if joined is not None and feature.present_in(problem):
            return joined.written(problem, problem_document)
    whole = problem
    for feature in FEATURES:
        problem = feature.unlowered(problem)
    where, chains = problem.placement, _chains(problem)
    # With `chains` a file lists the device of each stage, also where the two are those of a placement with a name.
    placed = {"placement": list(where.stage_device)} if "chains" in chains else placement_keys(where)
    document: dict[str, Any] = {
        "name": problem.name,
        "devices": problem.devices,
        "microbatches": problem.microbatches,
        **placed,
        **chains,
        "time_unit": problem.time_unit,
        **_streams_and_tasks(problem),
        "times": _times(problem),
        "memory": _memory(problem),
    }
    for feature in FEATURES:
        add_keys(document, feature.written(whole))
    return document | {"objective": document.pop("objective", problem.objective.name)}


def add_keys(document: dict[str, Any], keys: Mapping[str, object]) -> None:
    """Add keys to a document in place; a section that it has already gets the keys of the added one."""
    for key, value in keys.items():
        document[key] = document[key] | value if isinstance(value, dict) and key in document else value


def placement_keys(where: Placement) -> dict[str, object]:
    """Return the keys `placement` and `chunks` of a file: a standard placement's name, or each stage's device.

    `chunks`, the stages of a chain on each device, is there only with the names `interleaved` and `wave`.
    """
    chunks = where.stages // where.devices
    for name, make in PLACEMENTS.items():
        if where == make(where.devices, chunks):
            return {"placement": name} | ({"chunks": chunks} if name in ("interleaved", "wave") else {})
    return {"placement": list(where.stage_device)}


def _chains(problem: Problem) -> dict[str, object]:
    """Return the key `chains` of a problem whose micro-batches take different paths.

    Empty where its placement says them.
    """
    where = problem.placement
    if len(where.chains) == 1 or not problem.walks.shares:
        return {}
    shares = zip(where.chains, problem.walks.shares, strict=True)
    return {"chains": [{"stages": list(chain), "microbatches": count} for chain, count in shares]}


def _streams_and_tasks(problem: Problem) -> dict[str, object]:
    """Return the keys `streams` and `tasks` of a problem; empty for passes of single tasks on one stream."""
    keys: dict[str, object] = {"streams": list(problem.resources.streams)} if problem.resources.streams else {}
    if any(stage.tasks for stage in problem.stages):
        keys["tasks"] = tasks_section(problem.stages, problem.tick)
    return keys


def _times(problem: Problem) -> dict[str, object]:
    stages, tick = problem.stages, problem.tick
    document = {} if stages[0].tasks else _pass_times(problem)
    document["transfer"] = as_numbers([s.transfer for s in stages], tick)
    if problem.links:
        if any(stage.transfer for stage in stages):
            raise ValueError("a problem file gives transfers by stage or by pair of devices, not by both")
        document["transfer"] = [[as_number(lag * tick) for lag in row] for row in problem.links]
    if problem.resources.transfer_stream is not None:
        document["transfer"] = {"time": document["transfer"], "on": problem.resources.transfer_stream}
    return document


def _pass_times(problem: Problem) -> dict[str, object]:
    times = _ticks(problem.stages) | {"overlapped": [s.blocks.ticks for s in problem.stages]}
    parts = [stage.backward + (stage.weight or 0) for stage in problem.stages]
    if times["fused"] == parts and max(parts) * problem.tick > LARGEST:
        del times["fused"]  # the default, and more than a file may say
    document: dict[str, object] = {
        key: as_numbers(values, problem.tick) for key, values in times.items() if None not in values
    }
    saves = [s.blocks.saves for s in problem.stages]
    return document if None in saves else document | {"overlapped": {"saves": as_numbers(saves, problem.tick)}}


def _ticks(stages: Sequence[Stage]) -> dict[str, Sequence[Ticks | None]]:
    return {
        "forward": [s.forward for s in stages],
        "backward": [s.backward for s in stages],
        "weight": [s.weight for s in stages],
        "fused": [s.fused if W in s.kinds else None for s in stages],
    }


def _memory(problem: Problem) -> dict[str, object]:
    stages, step = problem.stages, problem.resolution
    document: dict[str, object] = {
        "unit": problem.memory_unit,
        "activation": as_numbers([s.activation for s in stages], step),
        "freed_by_backward": as_numbers([s.freed for s in stages], step),
    }
    limits = [pool.capacity for pool in problem.pools if pool.capacity is not None]
    if limits:
        if len(limits) < problem.devices:
            raise ValueError("a problem file limits the memory of every device or of none")
        document["capacity"] = as_numbers(limits, step)
    static_by_stage = any(stage.static for stage in stages) and not any(pool.static for pool in problem.pools)
    # A list as long as there are devices would be read as theirs, and one number too.
    if static_by_stage and problem.placement.stages != problem.devices:
        document["static"] = [as_number(stage.static * step) for stage in stages]
    elif any(problem.static):
        document["static"] = as_numbers(problem.static, step)
    return document
