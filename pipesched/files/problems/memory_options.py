"""Offload and recomputation of a problem file: from its keys to what each stage may do, and back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

from pipesched.files.exact_numbers import as_number, as_numbers
from pipesched.files.problems.memory_keys import ALWAYS, FREE, NEVER, CopyStream, Groups
from pipesched.files.problems.schema import MemorySection
from pipesched.problem.features.device_resources import HostPool, SharedStream
from pipesched.problem.memory_options import Offload, Recomputation
from pipesched.problem.problem import Problem

Numbers = Fraction | list[Fraction]
_STREAMS = (CopyStream("d2h"), CopyStream("h2d"))
# Names of the columns of times and memory, in addition to those of other keys.
OUT, BACK, AMOUNT = ("offload", "out"), ("offload", "in"), ("offload", "amount")


def option_times(section: MemorySection | None) -> Iterator[tuple[tuple[str, Any], Numbers]]:
    """The times of copies and recomputations that the file gives, by column."""
    if section is not None and section.offload is not None and _may(section, "offload"):
        yield OUT, section.offload.out or Fraction(0)
        yield BACK, getattr(section.offload, "in") or Fraction(0)
    for n, way in enumerate(section.recompute or () if section and _may(section, "recompute") else ()):
        yield ("recompute", n), way.time or Fraction(0)


def option_memory(section: MemorySection) -> Iterator[tuple[tuple[str, Any], Numbers]]:
    """What copies move and recomputations keep, by column."""
    if section.offload is not None and _may(section, "offload"):
        activation = Fraction(1) if section.activation is None else section.activation
        yield AMOUNT, activation if section.offload.amount is None else section.offload.amount
    for n, way in enumerate(section.recompute or () if _may(section, "recompute") else ()):
        yield ("keeps", n), way.keeps or Fraction(0)


def stage_options(
    section: MemorySection | None, columns: Mapping[Any, Sequence[int]], stages: int
) -> dict[str, list[Any]]:
    """`offload`, `recompute` and `may_keep` of every stage, as `Stage` holds them; none where the file has neither."""
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
        ways = [
            Recomputation(way.name or "", columns["recompute", n][s], columns["keeps", n][s])
            for n, way in enumerate(section.recompute or () if again else ())
        ]
        found["offload"].append(copies)
        found["recompute"].append(tuple(ways))
        found["may_keep"].append(ALWAYS not in (offload, recompute))
    return found


def copy_streams(section: MemorySection) -> tuple[CopyStream, CopyStream]:
    """The streams of copies out and in."""
    return (section.offload.on if section.offload else None) or _STREAMS


def decisions(section: MemorySection, key: str, stages: int) -> list[str]:
    """What the file says of a key, for every stage: never where there is nothing to decide."""
    if getattr(section, key) is None:
        return [NEVER] * stages
    words: str | list[str] = getattr(section.decide, key, None) or FREE
    return words * max(1, stages // len(words)) if isinstance(words, list) else [words] * stages


def _may(section: MemorySection, key: str) -> bool:
    """Whether some stage may do so: what none does has no part in the ticks."""
    return set(decisions(section, key, 1)) != {NEVER}


def shared_streams(section: MemorySection | None) -> tuple[SharedStream, ...]:
    """The streams that devices share."""
    if section is None or section.offload is None or not _may(section, "offload"):
        return ()
    held = {(one.stream, group): None for one in copy_streams(section) for group in one.groups if len(group) > 1}
    return tuple(SharedStream(*one) for one in held)


def host_groups(section: MemorySection, devices: int) -> Groups:
    """The devices of every host, where their memory is limited."""
    limit = section.offload.host_capacity if section.offload else None
    if limit is None or not _may(section, "offload"):
        return ()
    among = {device for group in limit.groups for device in group}
    return (*limit.groups, *((device,) for device in range(devices) if device not in among))


def memory_keys(problem: Problem) -> dict[str, object]:
    """`offload`, `recompute` and `decide` as a file writes them; ValueError where a file cannot say them."""
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
    return keys


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
    limits = [pool for pool in problem.host_pools if pool.capacity is not None]
    if limits:
        document["host_capacity"] = _host_capacity(problem, limits)
    return document


def _stream(problem: Problem, name: str) -> object:
    groups = [list(shared.devices) for shared in problem.shared_streams if shared.stream == name]
    return {"stream": name, "devices": groups} if groups else name


def _host_capacity(problem: Problem, limits: Sequence[HostPool]) -> object:
    held = sorted(device for pool in limits for device in pool.devices)
    alike = len({pool.capacity for pool in limits}) == 1
    alone = all(len(pool.devices) == 1 for pool in limits)
    if held != list(range(problem.devices)) or not (alike or alone):
        raise ValueError("a problem file limits the memory of every host, or of none; those that devices share alike")
    if alone:
        return as_numbers(
            [pool.capacity or 0 for pool in sorted(limits, key=lambda pool: pool.devices)], problem.resolution
        )
    capacity = as_number((limits[0].capacity or 0) * problem.resolution)
    return {"capacity": capacity, "devices": [list(pool.devices) for pool in limits]}


def _recompute(problem: Problem) -> list[dict[str, object]]:
    ways = [stage.recompute for stage in problem.stages]
    names = max(([way.name for way in own] for own in ways), key=len)
    if any(own and [way.name for way in own] != names for own in ways):
        raise ValueError("a problem file gives all stages that recompute the same ways")
    return [
        {
            "name": name,
            "time": as_numbers([own[n].ticks if own else 0 for own in ways], problem.tick),
            "keeps": as_numbers([own[n].keeps if own else 0 for own in ways], problem.resolution),
        }
        for n, name in enumerate(names)
    ]
