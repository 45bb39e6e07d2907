"""Memory of a problem file in whole steps: a column for each quantity by stage, and the capacity of each device."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import ceil, floor, gcd

from pipesched.errors import BadInput
from pipesched.files.features.catalogue import Feature
from pipesched.files.fields.stage_placement import per
from pipesched.files.problems.schema import MemorySection, ProblemFile
from pipesched.files.problems.times_in_ticks import Columns
from pipesched.files.rounding import LARGEST, step_of
from pipesched.files.schema_errors import shown
from pipesched.problem.features.device_resources import Pool
from pipesched.problem.placement import Placement


def memory_in_steps(
    form: ProblemFile, features: Sequence[Feature], section: MemorySection, where: Placement, most_steps: int
) -> tuple[Columns, tuple[Pool, ...], Fraction, list[str]]:
    """Return (columns, pools by device, size of a step, notes): all memory of a file in whole steps.

    A column is by stage, or if `Feature.limits` yields it in the order of that. The step is in the file's unit. Memory
    that B frees is rounded up, to at most the activation, and all else down, so that whatever fits still fits; numbers
    are rounded if their sum would exceed `most_steps` of the largest step that divides them, and a note says so. A pool
    without limit has the capacity None. `BadInput` for a capacity of more than `LARGEST` steps.
    """
    stages = where.stages
    activation = per(section.activation if section.activation is not None else Fraction(1), stages)
    freed = per(section.freed_by_backward or Fraction(0), stages)
    capacity = None if section.capacity is None else per(section.capacity, where.devices)
    # A list as long as there are devices is theirs; a longer one is the stages'.
    by_stage = isinstance(section.static, list) and len(section.static) != where.devices
    static = per(section.static or Fraction(0), stages if by_stage else where.devices)
    moved = {key: per(value, stages) for feature in features for key, value in feature.memory(form)}
    limits_besides = {key: values for feature in features for key, values in feature.limits(form)}
    host = [number for values in limits_besides.values() for number in values]
    passes = [*activation, *freed, *(number for column in moved.values() for number in column)]
    total = (form.microbatches or 1) * sum(map(abs, passes), Fraction(0))
    chosen = step_of(
        passes, total, max(capacity or [Fraction(0)]), also=[*(capacity or ()), *static, *host], most_steps=most_steps
    )
    step = chosen.size
    taken = [floor(number / step) for number in activation]
    given = [min(most, ceil(number / step)) for most, number in zip(taken, freed, strict=True)]
    always_in_use = [floor(number / step) for number in static]
    whole = [floor(number / step) for number in capacity or ()]
    if whole and max(whole) > LARGEST:
        most = float(LARGEST * step)
        raise BadInput(
            f"memory.capacity: found {shown(float(max(capacity or [])))}; allowed: up to {most:.2g} with activations "
            "so small or of so many digits, or leave capacity out where memory is ample"
        )
    # Of what moves or stays no more is counted than there is.
    parts = {key: [floor(number / step) for number in column] for key, column in moved.items()}
    besides = {key: [min(floor(number / step), LARGEST) for number in own] for key, own in limits_besides.items()}
    factor = (
        gcd(
            *taken,
            *given,
            *whole,
            *always_in_use,
            *(n for column in (*besides.values(), *parts.values()) for n in column),
        )
        or 1
    )

    def in_steps(values: list[int]) -> tuple[int, ...]:
        return tuple(number // factor for number in values)

    columns: Columns = {"activation": in_steps(taken), "freed": in_steps(given)}
    columns |= {key: in_steps(column) for key, column in (parts | besides).items()}
    always = in_steps(always_in_use)
    if by_stage:
        columns["static"], always = always, (0,) * where.devices
    limits = in_steps(whole) if whole else (None,) * where.devices
    pools = tuple(Pool(limit, own) for limit, own in zip(limits, always, strict=True))
    return columns, pools, step * factor, chosen.note("memory")
