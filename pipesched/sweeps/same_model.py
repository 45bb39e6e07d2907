"""The same model cut into another number of stages: costs of stages divided or summed, in a document's own keys."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Any

from pipesched.errors import BadInput
from pipesched.files.exact_numbers import as_decimal
from pipesched.files.schema_errors import shown
from pipesched.problem.placement import PLACEMENTS
from pipesched.problem.quantities import StageId

# What grows with the layers of a stage. A transfer does not: a micro-batch's tensor is what it is.
_TIMES = ("forward", "backward", "weight", "fused", "overlapped")
_MEMORY = ("activation", "freed_by_backward")
_DIGITS = 30  # of a share that has no finite decimal form


def with_same_model(document: Mapping[str, Any], changed: dict[str, Any]) -> None:
    """Give the stages of `changed` the layers of the stages of `document`, in place.

    Each chain has all layers. A list with one entry for each stage is in the order of the first chain; if there are
    more stages than before, each is divided evenly, and if there are fewer, neighbours are summed. `BadInput` for
    passes made of tasks, a placement by list, or a number of stages that is no multiple or divisor.
    """
    before, after = _shape(document), _shape(changed)
    if before == after:
        return
    if changed.get("tasks") or not isinstance(changed.get("times"), dict):
        raise BadInput("same_model: found passes made of tasks; allowed: times")
    if before is None or after is None:
        raise BadInput("same_model: found a placement that is a list of devices; allowed: one by name")
    (devices, stages, _), (_, new, chains) = before, after
    if new % stages and stages % new:
        raise BadInput(f"same_model: found {new} stages where the file has {stages}; allowed: a multiple or a divisor")

    def recut(numbers: list[Fraction]) -> list[Fraction]:
        first = numbers[:stages]
        if new >= stages:
            parts = new // stages
            return [number / parts for number in first for _ in range(parts)] * chains
        parts = stages // new
        return [sum(first[at : at + parts], Fraction(0)) for at in range(0, stages, parts)] * chains

    _each(changed["times"], _TIMES, stages, recut)
    if isinstance(saves := changed["times"].get("overlapped"), Mapping):
        changed["times"]["overlapped"] = dict(saves)
        _each(changed["times"]["overlapped"], ("saves",), stages, recut)
    memory = changed.setdefault("memory", {})
    if isinstance(memory, dict):
        memory.setdefault("activation", 1)  # the default is a stage's, and stages are others now
        _each(memory, _MEMORY, stages, recut)
        _recut_options(memory, stages, recut)
        _recut_static(memory, devices, before, recut)


def uneven_stages(document: Mapping[str, Any]) -> list[StageId]:
    """Return the stages of a problem file's document that take more than 1.5 times the median, such as one with a head.

    Empty where the document's placement has no name, or times are missing.
    """
    shape, times = _shape(document), document.get("times")
    if shape is None or not isinstance(times, Mapping):
        return []
    kinds = (times[key] for key in ("forward", "backward", "weight") if times.get(key) is not None)
    totals = list(map(sum, zip(*(_numbers(values, shape[1])[: shape[1]] for values in kinds), strict=True)))
    usual = sorted(totals)[(len(totals) - 1) // 2]
    return [stage for stage, total in enumerate(totals) if total > usual * Fraction(3, 2)]


def _shape(document: Mapping[str, Any]) -> tuple[int, int, int] | None:
    """Return (devices, stages of a chain, chains) of a problem file's document; None for a placement without a name,
    and for devices or chunks that are no whole numbers up to 10,000."""
    placement, devices, chunks = document.get("placement", "linear"), document.get("devices"), document.get("chunks", 1)
    if not isinstance(placement, str) or placement not in PLACEMENTS:
        return None
    if not isinstance(devices, int) or not isinstance(chunks, int) or not 0 < devices <= 10**4 or chunks > 10**4:
        return None
    where = PLACEMENTS[placement](devices, chunks)
    return devices, len(where.chains[0]), len(where.chains)


def _each(section: dict[str, Any], keys: tuple[str, ...], stages: int, recut: Callable[..., list[Fraction]]) -> None:
    for key in keys:
        if section.get(key) is not None and not isinstance(section[key], Mapping):
            section[key] = _written(recut(_numbers(section[key], stages)))


def _recut_options(memory: dict[str, Any], stages: int, recut: Callable[..., list[Fraction]]) -> None:
    """Convert the times and amounts of copies and recomputations in a `memory` section to the new stages with `recut`,
    in place.

    They grow with the layers of a stage; the share of an activation that stays does not change.
    """
    memory.update(copy.deepcopy({key: memory[key] for key in ("offload", "recompute") if key in memory}))
    if isinstance(memory.get("offload"), dict):
        _each(memory["offload"], ("out", "in", "amount"), stages, recut)
    for mode in memory.get("recompute") or ():
        _each(mode, ("time",), stages, recut)


def _recut_static(
    memory: dict[str, Any], devices: int, before: tuple[int, int, int], recut: Callable[..., list[Fraction]]
) -> None:
    """Convert the static memory of a `memory` section, of a device or of each old stage, to a list by new stage with
    `recut`, in place.

    One number is that of each device; of a device with several stages each gets an equal part. A list has one entry for
    each old stage; `BadInput` for a list by device. `before` is the old `_shape`.
    """
    static = memory.get("static")
    if static is None:
        return
    _, stages, chains = before
    if isinstance(static, list) and len(static) == devices != stages * chains:
        raise BadInput("same_model: found memory.static by device; allowed: one number, or one a stage")
    amounts = _numbers(static, stages)
    if not isinstance(static, list):
        amounts = [number * devices / (stages * chains) for number in amounts]
    # As a list with one entry a stage, also where all are alike: one number would be a device's.
    memory["static"] = [_decimal(number) for number in recut(amounts)]


def _numbers(value: object, stages: int) -> list[Fraction]:
    entries = value if isinstance(value, list) else [value] * stages
    numbers = [Fraction(one) for one in entries if isinstance(one, int | Decimal | Fraction)]
    if len(numbers) < max(stages, len(entries)):
        raise BadInput(f"same_model: found {shown(value)}; allowed: a number, or one a stage")
    return numbers


def _written(numbers: list[Fraction]) -> object:
    found = [_decimal(number) for number in numbers]
    return found[0] if len(set(found)) == 1 else found


def _decimal(number: Fraction) -> int | Decimal:
    """Return a number as an exact decimal if possible, else rounded."""
    try:
        return as_decimal(number)
    except ValueError:
        return as_decimal(Fraction(round(number * 10**_DIGITS), 10**_DIGITS))
