"""Plain plan and schedule files worked out from their numbers alone, without the tool's readers or models.

A file with any other key than those below gives None, and is judged elsewhere.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from itertools import combinations, combinations_with_replacement, pairwise, product
from pathlib import Path
from typing import Any

from benchmarks.matrix.exact.model import Exact
from benchmarks.matrix.plan_run import in_fractions
from benchmarks.proofs.options.claim import exact

_PLAN = {
    "name", "devices", "microbatches", "layers", "placement", "chunks", "partition", "memory", "decide", "transfer",
    "objective", "stage_overhead", "empty_stages", "time_unit",
}  # fmt: skip
_LAYER = {
    "name", "count", "forward", "backward", "weight", "fused", "memory", "activation", "freed_by_backward",
    "recompute", "with_previous",
}  # fmt: skip
_MOST_PLANS = 60
_PROBLEM = {"name", "devices", "microbatches", "placement", "chunks", "time_unit", "times", "memory", "objective"}
_TIMES = {"forward", "backward", "weight", "fused", "transfer"}
_MEMORY = {"unit", "capacity", "static", "activation", "freed_by_backward"}
Row = Sequence[Fraction]


def best_plan(document: Mapping[str, Any]) -> Exact | None:
    """Return the optimum of all plans of a plan document; None for keys that are not known here, or for many plans."""
    plan = in_fractions(document)
    problems = _problems(plan)
    if problems is None:
        return None
    found = [exact(one) for one in problems]
    if any(one is None for one in found):
        return None
    least = min((one.least for one in found if one is not None and one.least is not None), default=None)
    return Exact(least, min((one.most for one in found if one is not None and one.most is not None), default=None))


def _problems(plan: Mapping[str, Any]) -> list[dict[str, Any]] | None:
    """Return the problem document of each plan; None for what is not known here."""
    layers: Sequence[Mapping[str, Any]] = plan.get("layers") or ()
    decide = plan.get("decide", {})
    memory, partition = plan.get("memory", {}), plan.get("partition", "free")
    known = plan.keys() <= _PLAN and layers and all(layer.keys() <= _LAYER for layer in layers)
    known = known and memory.keys() <= {"capacity", "unit"} and decide.keys() <= {"recompute"}
    known = known and isinstance(plan.get("placement"), str) and isinstance(plan.get("chunks", 1), int)
    known = known and plan.get("placement") not in ("free", "bidirectional") and partition != "even"
    known = known and plan.get("objective", "makespan") in ("makespan", "span")
    # What B frees of a recomputed layer is a rule of its own; and so are units and shares.
    both = known and any("freed_by_backward" in layer and "recompute" in layer for layer in layers)
    texts = known and any(isinstance(value, str) for layer in layers for key, value in layer.items() if key != "name")
    if not known or both or texts:
        return None
    sequence = [layer for layer in layers for _ in range(layer.get("count", 1))]
    starts = [n for layer in layers for n in range(layer.get("count", 1))]  # of a run only the first is tied
    stages = plan["devices"] * plan.get("chunks", 1)
    found = list[dict[str, Any]]()
    for counts in _counts(len(sequence), stages, bool(plan.get("empty_stages"))):
        cuts = [sum(counts[:at]) for at in range(1, stages)]
        tied = {at for at in range(len(sequence)) if sequence[at].get("with_previous") and starts[at] == 0}
        if tied & set(cuts) or (partition != "free" and list(counts) != list(partition)):
            continue
        layers_of = [sequence[begin:end] for begin, end in zip([0, *cuts], [*cuts, len(sequence)], strict=True)]
        for chosen in product(*(_recomputed(own, decide.get("recompute", "free")) for own in layers_of)):
            found.append(_problem(plan, layers_of, chosen))
            if len(found) > _MOST_PLANS:
                return None
    return found


def _counts(layers: int, stages: int, empty: bool) -> Iterator[tuple[int, ...]]:
    every = combinations_with_replacement(range(layers + 1), stages - 1) if empty else None
    for cuts in every or combinations(range(1, layers), stages - 1):
        yield tuple(b - a for a, b in zip((0, *cuts), (*cuts, layers), strict=True))


def _recomputed(layers_of: Sequence[Mapping[str, Any]], decide: str) -> Iterator[tuple[Fraction, Fraction]]:
    """Yield for each choice of recomputed layers of a stage the time that it adds, and the activation that it saves."""
    options = list[list[tuple[Fraction, Fraction]]]()
    for layer in layers_of:
        modes = [
            (mode["time"], (1 - mode["keeps"]) * layer.get("activation", 0)) for mode in layer.get("recompute", ())
        ]
        none = [(Fraction(0), Fraction(0))]
        options.append(modes[:1] or none if decide == "always" else none if decide == "never" else none + modes)
    seen = {(sum(one[0] for one in each), sum(one[1] for one in each)) for each in product(*options)}
    yield from sorted((Fraction(time), Fraction(saved)) for time, saved in seen)


def _problem(
    plan: Mapping[str, Any],
    layers_of: Sequence[Sequence[Mapping[str, Any]]],
    chosen: Sequence[tuple[Fraction, Fraction]],
) -> dict[str, Any]:
    overhead = plan.get("stage_overhead", {})

    def row(key: str, more: Any = 0) -> list[Any]:
        return [sum((layer.get(key, 0) for layer in own), Fraction(0)) + more for own in layers_of]

    def full(layer: Mapping[str, Any]) -> Any:
        return layer.get("fused", layer["backward"] + layer.get("weight", 0))

    again, saved = zip(*chosen, strict=True)
    of_b, of_f = overhead.get("backward", 0), overhead.get("forward", 0)
    times: dict[str, Any] = {"forward": row("forward", of_f), "transfer": plan.get("transfer", 0)}
    times["backward"] = [b + r for b, r in zip(row("backward", of_b), again, strict=True)]
    if any("weight" in layer for own in layers_of for layer in own):
        times["weight"] = row("weight")
        times["fused"] = [sum(map(full, own), Fraction(0)) + of_b + r for own, r in zip(layers_of, again, strict=True)]
    found = {key: plan[key] for key in ("devices", "microbatches", "placement", "chunks", "objective") if key in plan}
    memory: dict[str, Any] = {"activation": [a - s for a, s in zip(row("activation"), saved, strict=True)]}
    # What B has recomputed stays until W.
    memory["freed_by_backward"] = [own - s for own, s in zip(row("freed_by_backward"), saved, strict=True)]
    if "capacity" in plan.get("memory", {}):
        memory |= {"capacity": plan["memory"]["capacity"], "static": row("memory")}
    return found | {"times": times, "memory": memory}


def value_of_schedule(path: Path) -> Fraction | None:
    """Return makespan or span of a schedule file, in its unit, from its starts; None for keys that are not known here.

    AssertionError where a device does two things at once, a pass begins too early, or memory is exceeded.
    """
    file = in_fractions(json.loads(path.read_text(encoding="utf-8"), parse_float=Decimal))
    problem, tick = file["problem"], Fraction(str(file["tick"]))
    times, memory = problem.get("times", {}), problem.get("memory", {})
    known = problem.keys() <= _PROBLEM and times.keys() <= _TIMES and memory.keys() <= _MEMORY
    known = known and not isinstance(times.get("transfer", 0), dict | list)
    if not known or problem.get("objective", "makespan") not in ("makespan", "span"):
        return None
    devices = _devices(problem)
    try:
        times, memory = _in_numbers(times), _in_numbers({key: memory[key] for key in memory if key != "unit"})
    except (TypeError, ValueError):
        return None
    if devices is None:
        return None
    stages = len(devices)

    def row(of: Mapping[str, Any], key: str) -> Row | None:
        value = of.get(key)
        return value if isinstance(value, list) or value is None else [Fraction(value)] * stages

    forward, backward, weight = row(times, "forward"), row(times, "backward"), row(times, "weight")
    assert forward is not None and backward is not None
    split = weight if weight is not None else [Fraction(0)] * stages
    fused = row(times, "fused") or [b + w for b, w in zip(backward, split, strict=True)]
    lengths = {"F": forward, "B": backward if weight is not None else fused, "W": split, "BW": fused}
    ran = dict[tuple[str, int, int], tuple[Fraction, Fraction]]()
    for name, start in file["starts"].items():
        kind, (stage, microbatch) = name.rstrip("0123456789."), map(int, name.lstrip("FBW").split("."))
        begin = Fraction(start) * tick
        ran[kind, stage, microbatch] = begin, begin + lengths[kind][stage]
    _refuse_overlaps(ran, devices)
    _refuse_early(ran, devices, Fraction(times.get("transfer", 0)), problem["microbatches"])
    _refuse_excess(
        ran,
        devices,
        memory.get("capacity"),
        [row(memory, key) for key in ("activation", "freed_by_backward", "static")],
    )
    ends = [[(begin, end) for (_, stage, _), (begin, end) in ran.items() if devices[stage] == d] for d in set(devices)]
    if problem.get("objective") == "span":
        return max(max(end for _, end in own) - min(begin for begin, _ in own) for own in ends)
    return max(end for own in ends for _, end in own)


def _in_numbers(section: Mapping[str, Any]) -> dict[str, Any]:
    """Return a section's numbers, some of which are texts such as 4/3; ValueError or TypeError for anything else."""

    def own(value: Any) -> Any:
        return [own(one) for one in value] if isinstance(value, list) else None if value is None else Fraction(value)

    return {key: own(value) for key, value in section.items()}


def _devices(problem: Mapping[str, Any]) -> list[int] | None:
    """Return the device of each stage; None for a placement that is not known here."""
    number, chunks = int(problem["devices"]), int(problem.get("chunks", 1))
    where = problem.get("placement", "linear")
    if isinstance(where, list):
        return [int(one) for one in where]
    forth = list(range(number))
    if where == "linear":
        return forth
    if where == "interleaved":
        return forth * chunks
    if where not in ("v-shape", "wave"):
        return None
    turns = 2 if where == "v-shape" else chunks
    return [device for turn in range(turns) for device in (forth[::-1] if turn % 2 else forth)]


def _refuse_overlaps(ran: Mapping[tuple[str, int, int], tuple[Fraction, Fraction]], devices: Sequence[int]) -> None:
    for device in set(devices):
        own = sorted(times for (_, stage, _), times in ran.items() if devices[stage] == device)
        assert all(a[1] <= b[0] for a, b in pairwise(own)), f"device {device} runs two passes at once"


def _refuse_early(
    ran: Mapping[tuple[str, int, int], tuple[Fraction, Fraction]],
    devices: Sequence[int],
    transfer: Fraction,
    microbatches: int,
) -> None:
    last = len(devices) - 1
    for stage, m in product(range(last + 1), range(microbatches)):
        back = "BW" if ("BW", stage, m) in ran else "B"
        waits = [(("F", stage, m), (back, stage, m), Fraction(0))]
        if ("W", stage, m) in ran:
            waits.append(((back, stage, m), ("W", stage, m), Fraction(0)))
        if stage < last:
            lag = transfer if devices[stage] != devices[stage + 1] else Fraction(0)
            next_back = "BW" if ("BW", stage + 1, m) in ran else "B"
            waits += [(("F", stage, m), ("F", stage + 1, m), lag), ((next_back, stage + 1, m), (back, stage, m), lag)]
        for one, other, lag in waits:
            assert ran[one][1] + lag <= ran[other][0], f"{other} begins before {one} has ended"


def _refuse_excess(
    ran: Mapping[tuple[str, int, int], tuple[Fraction, Fraction]],
    devices: Sequence[int],
    capacity: Fraction | Sequence[Fraction | None] | None,
    rows: Sequence[Row | None],
) -> None:
    if capacity is None:
        return
    one, none = [Fraction(1)] * len(devices), [Fraction(0)] * len(devices)
    activation, freed, static = (row or other for row, other in zip(rows, (one, none, none), strict=True))
    if any(len(row) != len(devices) for row in (activation, freed, static)):
        return  # static by device
    changes: dict[int, list[tuple[Fraction, bool, Fraction]]] = {device: [] for device in devices}
    for (kind, stage, m), (begin, end) in ran.items():
        own, split = changes[devices[stage]], ("W", stage, m) in ran
        if kind == "F":
            own.append((begin, True, activation[stage]))
        elif kind == "B" and split:
            own.append((end, False, max(freed[stage], Fraction(0))))
            own.append((begin, True, max(-freed[stage], Fraction(0))))
        else:
            own.append((end, False, activation[stage] - (freed[stage] if kind == "W" else 0)))
    for device, own in changes.items():
        level = sum((static[s] for s, where in enumerate(devices) if where == device), Fraction(0))
        room = capacity if isinstance(capacity, Fraction) else capacity[device]
        for _, takes, amount in sorted(own):  # at one instant what is released is there for what is taken
            level += amount if takes else -amount
            assert room is None or level <= room, f"device {device} holds {float(level)} of {float(room)}"
