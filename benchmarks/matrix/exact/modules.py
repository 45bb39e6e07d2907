"""The modules of a document as cells and ties, in addition to those of the trunk."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Any

from benchmarks.matrix.exact.cells import BACKWARD, FORWARD, Cell, Shape, Spec, Tie
from benchmarks.matrix.exact.frozen import freeze, untrained
from benchmarks.matrix.exact.once import once_of
from benchmarks.matrix.exact.values import of_stage

_ZERO = Fraction(0)


def add_modules(  # noqa: PLR0912 - one rule a key
    document: Mapping[str, Any], shape: Shape, trunk: Sequence[Sequence[Cell]]
) -> None:
    """Every module; `trunk` has the cells of the trunk's stages for each micro-batch."""
    in_line = False
    for name, keys in document["modules"].items():
        copies, passes = _copies(keys, shape.devices), document["microbatches"] // keys.get("serves", 1)
        cells: dict[tuple[int, int], list[Cell]] = {}
        shared = keys.get("placement") == "shared"
        for c, copy in enumerate(copies):
            for n in range(passes):
                if shared or n % len(copies) == c:
                    cells[c, n] = [_cell(name, keys, shape, device, (c, s), n) for s, device in enumerate(copy)]
        for line in cells.values():
            shape.cells += line
            for s, (a, b) in enumerate(pairwise(line)):
                forth, back = (_lag(document, keys, s, x, y) for x, y in ((a, b), (b, a)))
                shape.ties += [Tie(a, FORWARD, b, FORWARD, forth), Tie(b, BACKWARD, a, BACKWARD, back)]
        if shared:
            _share(document, keys, shape, trunk, cells)
        else:
            in_line |= len(copies) > 1
            _feed(document, keys, shape, trunk, cells)
        for device, amount in enumerate(_static(keys, copies, shape.devices)):
            room = shape.rooms[device]
            shape.rooms[device] = None if room is None else room - amount
        if keys.get("parameters"):
            for c, copy in enumerate(copies):
                for s, device in enumerate(copy):
                    passed = sum(cell.holder == (name, device, (c, s)) for line in cells.values() for cell in line)
                    own = once_of(keys["parameters"], shape.first_stream, device, s, Fraction(1), passed)
                    own = own._replace(holder=(name, device, (c, s)))
                    shape.once.append(untrained(own) if keys.get("frozen") else own)
    if in_line:
        lines: dict[tuple[object, ...], list[Cell]] = {}
        for cell in (cell for row in trunk for cell in row):
            lines.setdefault(cell.holder, []).append(cell)
        shape.lines += lines.values()


def _copies(keys: Mapping[str, Any], devices: int) -> list[list[int]]:
    where, stages = keys.get("placement"), keys.get("stages", 1)
    if where in ("replicated", "shared"):
        return [[device] * stages for device in range(devices)]
    if where is None:
        return [[0] * stages]
    return where if isinstance(where[0], list) else [where]


def _static(keys: Mapping[str, Any], copies: Sequence[Sequence[int]], devices: int) -> list[Fraction]:
    amounts = [_ZERO] * devices
    for copy in copies:
        for s, device in enumerate(copy):
            amounts[device] += of_stage((keys.get("memory") or {}).get("static", 0), s)
    return amounts


def _cell(name: str, keys: Mapping[str, Any], shape: Shape, device: int, place: tuple[int, int], n: int) -> Cell:
    times, memory, s = keys["times"], keys.get("memory") or {}, place[1]

    def time(key: str) -> Fraction:
        return of_stage(times.get(key, 0), s)

    weight = None if times.get("weight") is None else time("weight")
    whole = time("fused") if times.get("fused") is not None else time("backward") + (weight or 0)
    first = shape.first_stream
    found = Cell(
        device, (name, device, place), n, [Spec(first, time("forward"))], [Spec(first, time("backward"))],
        None if weight is None else [Spec(first, weight)], [Spec(first, whole)], None,
        of_stage(memory.get("activation", 1), s), of_stage(memory.get("freed_by_backward", 0), s),
    )  # fmt: skip
    if keys.get("frozen"):
        freeze(found)
    return found


def _lag(document: Mapping[str, Any], keys: Mapping[str, Any], s: int, one: Cell, other: Cell) -> Fraction:
    """The transfer of a module's stage, and that of the link."""
    if one.device == other.device:
        return _ZERO
    return of_stage(keys["times"].get("transfer", 0), s) + _link(document, one, other)


def _link(document: Mapping[str, Any], one: Cell, other: Cell) -> Fraction:
    """The time of a link between two devices, where the file gives times by pair of them."""
    transfer = document["times"].get("transfer", 0)
    if isinstance(transfer, Mapping):
        near = transfer["nodes"][one.device] == transfer["nodes"][other.device]
        return Fraction(transfer["intra_node" if near else "inter_node"])
    if isinstance(transfer, list) and isinstance(transfer[0], list):
        return Fraction(transfer[one.device][other.device])
    return _ZERO


def _feed(
    document: Mapping[str, Any],
    keys: Mapping[str, Any],
    shape: Shape,
    trunk: Sequence[Sequence[Cell]],
    cells: Mapping[tuple[int, int], Sequence[Cell]],
) -> None:
    serves, feeds = keys.get("serves", 1), keys.get("feeds", [0])
    for (_, n), line in cells.items():
        last, stages = line[-1], len(line)
        for j in range(n * serves, (n + 1) * serves):
            for stage in feeds if isinstance(feeds, list) else [feeds]:
                fed = trunk[j][stage]
                shape.ties.append(Tie(last, FORWARD, fed, FORWARD, _lag(document, keys, stages - 1, last, fed)))
                back = _lag(document, keys, stages - 1, fed, last)
                shape.ties.append(Tie(fed, BACKWARD, last, BACKWARD, back))


def _share(
    document: Mapping[str, Any],
    keys: Mapping[str, Any],
    shape: Shape,
    trunk: Sequence[Sequence[Cell]],
    cells: Mapping[tuple[int, int], Sequence[Cell]],
) -> None:
    """A part on every device; collectives of a given time join them."""
    serves = keys.get("serves", 1)
    collective = of_stage(keys["times"].get("transfer", 0), 0)
    for j, row in enumerate(trunk):
        parts = [cells[c, j // serves][0] for c in range(shape.devices)]
        if keys.get("follows") is None:
            feeds = keys.get("feeds", [0])
            for stage in feeds if isinstance(feeds, list) else [feeds]:
                for part in parts:
                    fed = row[stage]
                    shape.ties.append(Tie(part, FORWARD, fed, FORWARD, collective))
                    shape.ties.append(Tie(fed, BACKWARD, part, BACKWARD, _lag(document, keys, 0, fed, part)))
            continue
        stage = keys["follows"]
        fed = row[stage]
        for part in parts:
            shape.ties.append(Tie(fed, FORWARD, part, FORWARD, _sent(document, stage, fed, part)))
            shape.ties += [Tie(other, FORWARD, part, BACKWARD, collective) for other in parts]
            shape.ties.append(Tie(part, FORWARD if keys["barriers"] == 1 else BACKWARD, fed, BACKWARD, collective))


def _sent(document: Mapping[str, Any], stage: int, one: Cell, other: Cell) -> Fraction:
    """A tensor of the trunk's stage to a part on another device, or back."""
    if one.device == other.device:
        return _ZERO
    transfer = document["times"].get("transfer", 0)
    if isinstance(transfer, Mapping) or (isinstance(transfer, list) and isinstance(transfer[0], list)):
        return _link(document, one, other)
    return Fraction(transfer[stage % len(transfer)] if isinstance(transfer, list) else transfer)
