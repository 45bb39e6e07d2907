"""Checks of a problem file that concern several keys at once; each runs on whatever keys are valid."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any

from pipesched.files.features.catalogue import Feature
from pipesched.files.fields.blocks_field import Saves
from pipesched.files.fields.link_times import is_matrix, latency_of, wrong_size
from pipesched.files.fields.parameter_sections import objective_mistakes
from pipesched.files.fields.section import WrongPaths
from pipesched.files.fields.stage_placement import stage_count
from pipesched.files.limits import MOST_CELLS
from pipesched.files.problems.schema import ProblemFile
from pipesched.files.schema_errors import shown_amount
from pipesched.problem.objective import OBJECTIVES
from pipesched.problem.placement import FIXED_CHUNKS

# Devices that one message names.
_NAMED = 20
# The objectives of files without work once an iteration.
WITHOUT_PARAMETERS = "makespan, span, period or free_memory"


def mistakes(
    form: ProblemFile,
    features: Sequence[Feature],
    wrong: WrongPaths = frozenset(),
    forms: int = 1,
    devices_of_others: bool = False,
) -> list[str]:
    """Return a line for each broken rule over several keys, except of key paths already known as wrong.

    `features` are those that the file has. `forms` is the number of forms that the file stands for, this one included;
    it counts for size limits. With `devices_of_others` a device may have no stage in this form.
    """
    found: list[str] = []
    if "placement" not in wrong:
        found += [*_placement(form, devices_of_others), *_chunks(form)]
    stages = None if wrong & {"devices", "placement", "chunks"} else stage_count(form)
    found += _size(form, stages, forms)
    found += _lengths(form, features, stages)
    for feature in features:
        found += feature.mistakes(form, stages, wrong)
    if features or OBJECTIVES[form.objective].passes is not None:
        once = [one.name for one in features if one.once and getattr(form, one.name) is not None]
        keys: Any = form  # with those that features add
        found += objective_mistakes(keys, once, WITHOUT_PARAMETERS, wrong)
    if "times.weight" not in wrong:
        found += _backward(form)
    if "memory.activation" not in wrong:
        found += _freed(form)
    return found


def _size(form: ProblemFile, stages: int | None, forms: int) -> Iterator[str]:
    """Yield a mistake for a problem too large for memory, which is most likely a typing error.

    `forms` is the number of forms that the file stands for, such as one for each piece. `stages` is the number of
    stages, None if not known.
    """
    stages = None if stages is None else stages * forms
    if stages is not None and form.microbatches is not None and stages * form.microbatches > MOST_CELLS:
        yield (
            f"microbatches: found {form.microbatches} on {stages} stages; allowed: up to {MOST_CELLS} stages times "
            f"micro-batches, so {MOST_CELLS // stages} on so many stages"
        )


def _placement(form: ProblemFile, devices_of_others: bool) -> Iterator[str]:
    if not isinstance(form.placement, list) or form.devices is None:
        return
    for stage, device in enumerate(form.placement):
        if device >= form.devices:
            yield f"placement[{stage}]: found device {device}; allowed: 0 to {form.devices - 1}"
    idle = sorted(set(range(form.devices)) - set(form.placement))
    if idle and not devices_of_others:
        named = ", ".join(map(str, idle[:_NAMED])) + (", ..." if len(idle) > _NAMED else "")
        yield (
            f"placement: found no stage on device {named}; allowed: at least one stage on each of the {form.devices} "
            "devices"
        )


def _chunks(form: ProblemFile) -> Iterator[str]:
    if form.chunks is None:
        return
    if isinstance(form.placement, list):
        yield f"chunks: found {form.chunks}; allowed: nothing, since the placement lists every stage"
        return
    fixed = FIXED_CHUNKS.get(form.placement)
    if fixed is not None and form.chunks != fixed:
        yield (
            f"chunks: found {form.chunks}; allowed: {fixed} with placement {form.placement} "
            "(interleaved and wave take any number)"
        )


def _lengths(form: ProblemFile, features: Sequence[Feature], stages: int | None) -> Iterator[str]:
    if stages is not None:
        allowed = {stages, stages // 2} if form.placement == "bidirectional" else {stages}
        for path, value in _per_stage(form, features):
            if isinstance(value, list) and not is_matrix(value) and len(value) not in allowed:
                lengths = " or ".join(map(str, sorted(allowed)))
                yield f"{path}: found {len(value)} values; allowed: one number, or a list of {lengths}, one per stage"
    if form.times and form.devices is not None and (wrong := wrong_size(latency_of(form.times.transfer), form.devices)):
        yield wrong
    capacity = form.memory.capacity if form.memory else None
    if isinstance(capacity, list) and form.devices is not None and len(capacity) != form.devices:
        yield (
            f"memory.capacity: found {len(capacity)} values; allowed: one number, or a list of {form.devices}, "
            "one per device"
        )
    static = form.memory.static if form.memory else None
    if isinstance(static, list) and None not in (stages, form.devices) and len(static) not in (form.devices, stages):
        counts = " or ".join(map(str, sorted({form.devices or 0, stages or 0})))
        yield (
            f"memory.static: found {len(static)} values; allowed: one number, or a list of {counts}, one per device or "
            "stage"
        )


def _per_stage(form: ProblemFile, features: Sequence[Feature]) -> Iterator[tuple[str, object]]:
    if form.times:
        for key in type(form.times).model_fields:
            value = getattr(form.times, key)
            if isinstance(value, Saves):
                yield f"times.{key}.saves", value.ticks
            else:
                yield f"times.{key}", latency_of(value) if key == "transfer" else value
    if form.memory:
        yield "memory.activation", form.memory.activation
        yield "memory.freed_by_backward", form.memory.freed_by_backward
    for feature in features:
        yield from feature.per_stage(form)


def _backward(form: ProblemFile) -> Iterator[str]:
    if form.times and form.times.fused is not None and form.times.weight is None and form.tasks is None:
        yield (
            "times.fused: found without times.weight; allowed: leave it out, since backward is then the full, fused "
            "backward, or give times.weight"
        )


def _freed(form: ProblemFile) -> Iterator[str]:
    """Yield mistakes where B frees more memory than F takes."""
    if form.memory is None or form.memory.freed_by_backward is None:
        return
    freed, unit = form.memory.freed_by_backward, form.memory.unit
    activation = form.memory.activation if form.memory.activation is not None else Fraction(1)
    for place, (given, taken) in _pairs(freed, activation):
        if given > taken:
            yield (
                f"memory.freed_by_backward{place}: found {shown_amount(given, unit)}; allowed: at most the activation, "
                f"{shown_amount(taken, unit)}"
            )


def _pairs(
    one: Fraction | list[Fraction], other: Fraction | list[Fraction]
) -> Iterator[tuple[str, tuple[Fraction, Fraction]]]:
    """Yield (index, pair) for two values given for all stages or by stage.

    The index is text such as `[2]` for messages. Lists are paired up to the shorter length; the index is empty where
    neither is a list.
    """
    if not isinstance(one, list) and not isinstance(other, list):
        yield "", (one, other)
        return
    count = min(len(x) for x in (one, other) if isinstance(x, list))
    for index in range(count):
        a = one[index] if isinstance(one, list) else one
        b = other[index] if isinstance(other, list) else other
        yield f"[{index}]", (a, b)
