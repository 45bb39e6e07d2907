"""Offload and recomputation: two modes of freeing activation memory between a forward and its backward."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

from pydantic import Field

from pipesched.files.exact_numbers import as_number, as_numbers
from pipesched.files.features.catalogue import FEATURES, Column, Columns, Feature, ProblemForm, first_stream
from pipesched.files.fields.kind import QuantityKind
from pipesched.files.fields.link_times import stream_of
from pipesched.files.fields.offload_sections import (
    ALWAYS,
    FREE,
    HOST,
    NEVER,
    CopyStream,
    DecideSection,
    Groups,
    OffloadSection,
    RecomputeMode,
)
from pipesched.files.fields.section import Section, WrongPaths
from pipesched.files.fields.together import Refused, given, of_value
from pipesched.files.schema_errors import shown, shown_amount
from pipesched.problem.features.device_resources import HostPool, SharedStream
from pipesched.problem.memory_options import Offload, Recomputation
from pipesched.problem.passes import RECOMPUTATIONS
from pipesched.problem.problem import Problem
from pipesched.problem.quantities import DeviceId

_STREAMS = (CopyStream("d2h"), CopyStream("h2d"))
# Names of the columns of times and memory, in addition to those of other keys.
OUT, BACK, AMOUNT, _HOST = ("offload", "out"), ("offload", "in"), ("offload", "amount"), ("offload", "host")


class Keys(Section):
    """The keys `offload`, `recompute` and `decide` of the section `memory`."""

    offload: OffloadSection | None = Field(None, description="activations may move to other memory and back")
    recompute: list[RecomputeMode] | None = Field(None, description="ways to compute activations again; up to six")
    decide: DecideSection | None = Field(None, description="what the solver may choose of offload and recompute")


def _times(form: ProblemForm) -> Iterator[Column]:
    """Yield the durations of copies and recomputations as columns, in the file's unit.

    A column is a name, and one number or one for each stage. They become whole ticks with all other times of the file.
    """
    section = form.memory
    if section is not None and section.offload is not None and _may(section, "offload"):
        yield OUT, section.offload.out or Fraction(0)
        yield BACK, getattr(section.offload, "in") or Fraction(0)
    for n, mode in enumerate(section.recompute or () if section and _may(section, "recompute") else ()):
        yield ("recompute", n), mode.time or Fraction(0)


def _memory(form: ProblemForm) -> Iterator[Column]:
    """Yield the amounts of memory that copies move and that recomputations keep, as columns in the file's unit."""
    section = form.memory
    if section is None:
        return
    if section.offload is not None and _may(section, "offload"):
        activation = Fraction(1) if section.activation is None else section.activation
        yield AMOUNT, activation if section.offload.amount is None else section.offload.amount
    for n, mode in enumerate(section.recompute or () if _may(section, "recompute") else ()):
        yield ("keeps", n), mode.keeps or Fraction(0)


def _stages(form: ProblemForm, columns: Columns, stages: int) -> dict[str, list[Any]]:
    """Return the fields `offload`, `recompute` and `may_keep` of every stage; empty where the file has neither mode.

    A stage that never offloads has None, one that never recomputes no modes. Columns are in ticks and in steps of
    memory.
    """
    section = form.memory
    if section is None or (section.offload is None and section.recompute is None):
        return {}
    out, back = copy_streams(section)
    offloads = decisions(section, "offload", stages)
    recomputes = decisions(section, "recompute", stages)
    found: dict[str, list[Any]] = {"offload": [], "recompute": [], "may_keep": []}
    for s, (offload, recompute) in enumerate(zip(offloads, recomputes, strict=True)):
        # An activation is offloaded or recomputed, so where one is always done the other never is.
        copied = offload != NEVER and recompute != ALWAYS
        again = recompute != NEVER and offload != ALWAYS
        copies = (
            Offload(columns[OUT][s], columns[BACK][s], out.stream, back.stream, columns[AMOUNT][s]) if copied else None
        )
        modes = [
            Recomputation(mode.name or "", columns["recompute", n][s], columns["keeps", n][s])
            for n, mode in enumerate(section.recompute or () if again else ())
        ]
        found["offload"].append(copies)
        found["recompute"].append(tuple(modes))
        found["may_keep"].append(ALWAYS not in (offload, recompute))
    return found


def copy_streams(section: Any) -> tuple[CopyStream, CopyStream]:
    """Return the streams of the copies out and back in a file's section `memory`.

    They are those that the file names, or else d2h and h2d.
    """
    return (section.offload.on if section.offload else None) or _STREAMS


def decisions(section: Any, key: str, stages: int) -> list[str]:
    """Return free, always or never for each stage: the file's `decide.offload` or `decide.recompute` (`key`).

    Free where `decide` does not say, never where the file has no section `key`; a list for fewer stages is repeated.
    Values are not checked here.
    """
    if getattr(section, key) is None:
        return [NEVER] * stages
    words: str | list[str] = getattr(section.decide, key, None) or FREE
    return words * max(1, stages // len(words)) if isinstance(words, list) else [words] * stages


def _may(section: Any, key: str) -> bool:
    """Return True if a file's section `memory` lets some stage use `key` (offload or recompute).

    If none may, its times do not count for the tick.
    """
    return set(decisions(section, key, 1)) != {NEVER}


def _shared_streams(section: Any) -> tuple[SharedStream, ...]:
    """Return the streams of copies in a file's section `memory` that several devices share, each with these devices.

    Empty without offload.
    """
    if section is None or section.offload is None or not _may(section, "offload"):
        return ()
    groups = {(one.stream, group): None for one in copy_streams(section) for group in one.groups if len(group) > 1}
    return tuple(SharedStream(*one) for one in groups)


def _host_groups(form: ProblemForm) -> Groups:
    """Return the devices of every host whose memory is limited; empty where the file gives no host capacity.

    First are the groups that the file lists, then a host for each other device.
    """
    section = form.memory
    limit = section.offload.host_capacity if section and section.offload else None
    if limit is None or not _may(section, "offload"):
        return ()
    among = {device for group in limit.groups for device in group}
    return (*limit.groups, *((device,) for device in range(form.devices) if device not in among))


def _limits(form: ProblemForm) -> Iterator[tuple[object, list[Fraction]]]:
    """Yield one column, with the capacity of each host; none without a host capacity or where no stage may offload.

    The column is (name, amounts in the file's unit in the order of `_host_groups`).
    """
    groups = _host_groups(form)
    if groups:
        capacity = form.memory.offload.host_capacity.capacity
        yield (
            _HOST,
            capacity * (len(groups) // len(capacity)) if isinstance(capacity, list) else [capacity] * len(groups),
        )


def _fields(problem: Problem, form: ProblemForm, columns: Columns) -> dict[str, object]:
    """Return the field `resources` of the problem, with host memory (in steps) and the streams that devices share."""
    hosts = zip(columns.get(_HOST, ()), _host_groups(form), strict=True)
    shared, own = _shared_streams(form.memory), tuple(HostPool(*one) for one in hosts)
    return {"resources": replace(problem.resources, shared_streams=shared, hosts=own)}


def _written(problem: Problem) -> dict[str, object]:
    """Return a section `memory` with the keys `offload`, `recompute` and `decide` of a problem.

    Empty if no stage offloads or recomputes. ValueError where no file can express them.
    """
    stages = problem.stages
    if not any(stage.saving_kinds for stage in stages):
        return {}
    if any(not stage.may_keep and stage.offload and stage.recompute for stage in stages):
        raise ValueError("a problem file says of offload or of recomputation that it is always done, not of either one")
    keys: dict[str, object] = {}
    decide: dict[str, list[str]] = {}
    if any(stage.offload for stage in stages):
        keys["offload"] = _offload(problem)
        decide["offload"] = [_word(bool(stage.offload), stage.may_keep) for stage in stages]
    if any(stage.recompute for stage in stages):
        keys["recompute"] = _recompute(problem)
        decide["recompute"] = [_word(bool(stage.recompute), stage.may_keep) for stage in stages]
    keys["decide"] = {key: words[0] if len(set(words)) == 1 else words for key, words in decide.items()}
    return {"memory": keys}


def _word(may: bool, may_keep: bool) -> str:
    return NEVER if not may else FREE if may_keep else ALWAYS


def _offload(problem: Problem) -> dict[str, object]:
    found = [stage.offload for stage in problem.stages]
    one = next(offload for offload in found if offload)
    if any(offload and (offload.out_stream, offload.in_stream) != (one.out_stream, one.in_stream) for offload in found):
        raise ValueError("a problem file gives the copies of all stages the same streams")
    none = Offload(0, 0, "", "", 0)
    rows = [offload or none for offload in found]
    document: dict[str, object] = {
        "out": as_numbers([row.out_ticks for row in rows], problem.tick),
        "in": as_numbers([row.in_ticks for row in rows], problem.tick),
        "on": [_stream(problem, one.out_stream), _stream(problem, one.in_stream)],
        "amount": as_numbers([row.amount for row in rows], problem.resolution),
    }
    to = _targets(problem)
    if set(to) != {HOST}:
        document["to"] = to
    limits = [pool for pool in problem.resources.hosts if pool.capacity is not None]
    # A limit of hosts says nothing where nothing moves there.
    if limits and HOST in to:
        document["host_capacity"] = _host_capacity(problem, limits)
    return document


def _targets(problem: Problem) -> list[DeviceId | str]:
    """Return for each device the one to whose memory its activations move, or `host`.

    ValueError if they move to several.
    """
    found: list[int | str] = []
    for stages in problem.placement.stages_of:
        peers = {own.to for s in stages if (own := problem.stages[s].offload)}
        if len(peers) > 1:
            raise ValueError("a problem file moves the activations of a device to one memory")
        peer = next(iter(peers), None)
        found.append(HOST if peer is None else peer)
    return found


def _stream(problem: Problem, name: str) -> object:
    groups = [list(shared.devices) for shared in problem.resources.shared_streams if shared.stream == name]
    return {"stream": name, "devices": groups} if groups else name


def _host_capacity(problem: Problem, limits: Sequence[HostPool]) -> object:
    limited = sorted(device for pool in limits for device in pool.devices)
    alike = len({pool.capacity for pool in limits}) == 1
    alone = all(len(pool.devices) == 1 for pool in limits)
    if limited != list(range(problem.devices)) or not (alike or alone):
        raise ValueError("a problem file limits the memory of every host, or of none; those that devices share alike")
    if alone:
        return as_numbers(
            [pool.capacity or 0 for pool in sorted(limits, key=lambda pool: pool.devices)], problem.resolution
        )
    capacity = as_number((limits[0].capacity or 0) * problem.resolution)
    return {"capacity": capacity, "devices": [list(pool.devices) for pool in limits]}


def _recompute(problem: Problem) -> list[dict[str, object]]:
    modes = [stage.recompute for stage in problem.stages]
    names = max(([mode.name for mode in own] for own in modes), key=len)
    if any(own and [mode.name for mode in own] != names for own in modes):
        raise ValueError("a problem file gives all stages that recompute the same ways")
    return [
        {
            "name": name,
            "time": as_numbers([own[n].ticks if own else 0 for own in modes], problem.tick),
            "keeps": as_numbers([own[n].keeps if own else 0 for own in modes], problem.resolution),
        }
        for n, name in enumerate(names)
    ]


def _mistakes(form: ProblemForm, stages: int | None, wrong: WrongPaths) -> Iterator[str]:
    """Yield a line for each broken rule of `offload`, `recompute` and `decide`; nothing if one has wrong values.

    `stages` is the number of stages, None if not known.
    """
    section = form.memory
    if section is None or any(
        path.startswith(("memory.offload", "memory.recompute", "memory.decide")) for path in wrong
    ):
        return
    if section.offload is not None:
        yield from _offload_mistakes(form, section)
    yield from _recompute_mistakes(section)
    yield from _decide(section, stages)
    if "memory.activation" not in wrong:
        yield from _parts_of_activation(section)


def _per_stage(form: ProblemForm) -> Iterator[tuple[str, object]]:
    """Yield the key paths, with their values, whose lists must have one entry for each stage."""
    section = form.memory
    if section is None:
        return
    if section.offload is not None:
        for key in ("out", "in", "amount"):
            yield f"memory.offload.{key}", getattr(section.offload, key)
    for n, mode in enumerate(section.recompute or ()):
        yield from ((f"memory.recompute[{n}].{key}", getattr(mode, key)) for key in ("time", "keeps"))
    if section.decide is not None:
        yield from ((f"memory.decide.{key}", getattr(section.decide, key)) for key in ("offload", "recompute"))


def _offload_mistakes(form: ProblemForm, section: Any) -> Iterator[str]:
    offload = section.offload
    assert offload is not None
    yield from offload.missing("memory.offload")
    out, back = copy_streams(section)
    if out.stream == back.stream and out.groups != back.groups:
        yield f"memory.offload.on: found {out.stream} shared in two ways; allowed: the same devices for out and in"
    busy = {first_stream(form), stream_of(form.times.transfer) if form.times else None}
    lists = (getattr(form.tasks, key, None) or () for key in ("forward", "backward", "weight"))
    busy |= {task.on for tasks in lists for task in tasks}
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


def _recompute_mistakes(section: Any) -> Iterator[str]:
    modes = section.recompute
    if modes is None:
        return
    if not 1 <= len(modes) <= len(RECOMPUTATIONS):
        yield f"memory.recompute: found {len(modes)} ways; allowed: 1 to {len(RECOMPUTATIONS)}"
    for n, mode in enumerate(modes):
        yield from mode.missing(f"memory.recompute[{n}]")
        if mode.name is not None and mode.name in [one.name for one in modes[:n]]:
            yield f"memory.recompute[{n}].name: found {mode.name!r} twice; allowed: each name once"


def _decide(section: Any, stages: int | None) -> Iterator[str]:
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


def _parts_of_activation(section: Any) -> Iterator[str]:
    """Yield mistakes where the amount offloaded or kept is larger than the activation that F takes."""
    activation = section.activation if section.activation is not None else Fraction(1)
    parts: list[tuple[str, Fraction | list[Fraction] | None]] = []
    if section.offload is not None:
        parts.append(("memory.offload.amount", section.offload.amount))
    parts += [(f"memory.recompute[{n}].keeps", mode.keeps) for n, mode in enumerate(section.recompute or ())]
    for path, part in parts:
        some = part if isinstance(part, list) else [part] * (len(activation) if isinstance(activation, list) else 1)
        whole = activation if isinstance(activation, list) else [activation] * len(some)
        above = [(one, most) for one, most in zip(some, whole, strict=False) if one is not None and one > most]
        for one, most in above[:1]:
            found, allowed = shown_amount(one, section.unit), shown_amount(most, section.unit)
            yield f"{path}: found {found}; allowed: at most the activation, {allowed}"


_EITHER_OF_THREE = "the time of a block with a copy or a recomputation inside is not given"
_PERIODIC = "the periodic model has no copies and no recomputation"
_OWN = (given("memory.offload"), given("memory.recompute"))

FEATURES.register(
    Feature(
        name="memory.offload",
        sections={"memory": Keys},
        mistakes=_mistakes,
        per_stage=_per_stage,
        times=_times,
        memory=_memory,
        limits=_limits,
        stages=_stages,
        fields=_fields,
        written=_written,
        refused=(
            *(Refused(given("times.overlapped"), one, "one of them", _EITHER_OF_THREE) for one in _OWN),
            *(Refused(of_value("objective", "period"), one, "makespan or span", _PERIODIC) for one in _OWN),
        ),
        with_units={
            **{f"memory.{key}": QuantityKind.TIME for key in ("recompute.time", "offload.out", "offload.in")},
            "memory.offload.host_capacity": QuantityKind.MEMORY,
            **{f"memory.{key}": QuantityKind.PART for key in ("recompute.keeps", "offload.amount")},
        },
        present_in=lambda problem: any(stage.saving_kinds for stage in problem.stages),
    )
)
