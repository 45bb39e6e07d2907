"""Checks of a problem file's offload and recomputation: what refers to devices and streams, and what excludes what."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from pipesched.files.fields.link_times import stream_of
from pipesched.files.problems.memory_keys import ALWAYS, NEVER, Groups
from pipesched.files.problems.memory_options import copy_streams, decisions
from pipesched.files.problems.schema import MemorySection, ProblemFile
from pipesched.files.problems.task_checks import task_lists
from pipesched.files.schema_errors import shown, shown_amount
from pipesched.problem.passes import RECOMPUTATIONS
from pipesched.problem.stage import COMPUTE

Value = Fraction | list[Fraction] | None


def option_mistakes(form: ProblemFile, stages: int | None, wrong: frozenset[str]) -> Iterator[str]:
    """Every broken rule, one line each; silent on sections that hold wrong values."""
    section = form.memory
    if section is None or any(
        path.startswith(("memory.offload", "memory.recompute", "memory.decide")) for path in wrong
    ):
        return
    if section.offload is not None:
        yield from _offload(form, section)
    yield from _recompute(section)
    yield from _decide(section, stages)
    if "memory.activation" not in wrong:
        yield from _parts_of_activation(section)


def values_per_stage(section: MemorySection) -> Iterator[tuple[str, object]]:
    """The key paths whose lists have one entry a stage."""
    if section.offload is not None:
        for key in ("out", "in", "amount"):
            yield f"memory.offload.{key}", getattr(section.offload, key)
    for n, way in enumerate(section.recompute or ()):
        yield from ((f"memory.recompute[{n}].{key}", getattr(way, key)) for key in ("time", "keeps"))
    if section.decide is not None:
        yield from ((f"memory.decide.{key}", getattr(section.decide, key)) for key in ("offload", "recompute"))


def _offload(form: ProblemFile, section: MemorySection) -> Iterator[str]:
    offload = section.offload
    assert offload is not None
    yield from offload.missing("memory.offload")
    out, back = copy_streams(section)
    if out.stream == back.stream and out.groups != back.groups:
        yield f"memory.offload.on: found {out.stream} shared in two ways; allowed: the same devices for out and in"
    busy = {(form.streams or [COMPUTE])[0], stream_of(form.times.transfer) if form.times else None}
    busy |= {task.on for _, tasks in task_lists(form) for task in tasks}
    for one in dict.fromkeys((out, back)):
        yield from _devices("memory.offload.on", one.groups, form.devices)
        if one.groups and one.stream in busy:
            yield f"memory.offload.on: found {one.stream}, which runs other tasks; allowed: shared for copies alone"
    if offload.host_capacity is not None:
        yield from _devices("memory.offload.host_capacity", offload.host_capacity.groups, form.devices)
        given = offload.host_capacity.capacity
        if isinstance(given, list) and form.devices is not None and len(given) != form.devices:
            allowed = f"one number, or a list of {form.devices}, one per device"
            yield f"memory.offload.host_capacity: found {len(given)} values; allowed: {allowed}"


def _devices(path: str, groups: Groups, devices: int | None) -> Iterator[str]:
    for device in (device for group in groups for device in group):
        if devices is not None and device >= devices:
            yield f"{path}.devices: found device {device}; allowed: 0 to {devices - 1}"


def _recompute(section: MemorySection) -> Iterator[str]:
    ways = section.recompute
    if ways is None:
        return
    if not 1 <= len(ways) <= len(RECOMPUTATIONS):
        yield f"memory.recompute: found {len(ways)} ways; allowed: 1 to {len(RECOMPUTATIONS)}"
    for n, way in enumerate(ways):
        yield from way.missing(f"memory.recompute[{n}]")
        if way.name is not None and way.name in [one.name for one in ways[:n]]:
            yield f"memory.recompute[{n}].name: found {way.name!r} twice; allowed: each name once"


def _decide(section: MemorySection, stages: int | None) -> Iterator[str]:
    if section.decide is None:
        return
    for key in ("offload", "recompute"):
        words = getattr(section.decide, key)
        if (
            words is not None
            and getattr(section, key) is None
            and {*([words] if isinstance(words, str) else words)} != {NEVER}
        ):
            allowed = f"never, or memory.{key} as well"
            yield f"memory.decide.{key}: found {shown(words)} without memory.{key}; allowed: {allowed}"
    lists = [words for words in (section.decide.offload, section.decide.recompute) if isinstance(words, list)]
    if stages is None or any(stages % len(words) for words in lists):
        return
    both = zip(decisions(section, "offload", stages), decisions(section, "recompute", stages), strict=False)
    found = [stage for stage, words in enumerate(both) if words == (ALWAYS, ALWAYS)]
    if found:
        where = ", ".join(map(str, found))
        yield f"memory.decide: found always for offload and recompute of stage {where}; allowed: always for one of them"


def _parts_of_activation(section: MemorySection) -> Iterator[str]:
    """What moves or stays is part of what F took."""
    activation = section.activation if section.activation is not None else Fraction(1)
    parts: list[tuple[str, Value]] = []
    if section.offload is not None:
        parts.append(("memory.offload.amount", section.offload.amount))
    parts += [(f"memory.recompute[{n}].keeps", way.keeps) for n, way in enumerate(section.recompute or ())]
    for path, part in parts:
        some = part if isinstance(part, list) else [part] * (len(activation) if isinstance(activation, list) else 1)
        whole = activation if isinstance(activation, list) else [activation] * len(some)
        above = [(one, most) for one, most in zip(some, whole, strict=False) if one is not None and one > most]
        for one, most in above[:1]:
            found, allowed = shown_amount(one, section.unit), shown_amount(most, section.unit)
            yield f"{path}: found {found}; allowed: at most the activation, {allowed}"
