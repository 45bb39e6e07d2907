"""The judge: says every rule a timeline breaks, and with which passes. Knows neither simulator nor solver."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from pipesched.amounts import amount, memory_amount, memory_text
from pipesched.passes import BW, B, F, Pass, PassKind, Stream, Task, W
from pipesched.problem import Problem
from pipesched.schedule import Schedule
from pipesched.timeline import Timeline


@dataclass(frozen=True)
class Violation:
    """One broken rule, the passes that break it, and the sentence that says how."""

    rule: str
    passes: tuple[Pass, ...]
    text: str


class _Occupied(NamedTuple):
    """A pass, or a piece of one, on a stream."""

    start: int
    end: int
    of: Pass
    position: int


def validate(timeline: Timeline) -> list[Violation]:
    """Every broken rule of a timeline; empty if it is right.

    Rules: complete, placement, times, precedence, overlap, order, memory. The times are judged only where every
    pass stands exactly once on its own device, since they mean nothing otherwise.
    """
    violations = list(validate_schedule(timeline.problem, timeline.schedule))
    if violations:
        return violations
    violations = list(_times(timeline))
    if violations:
        return violations
    return [*_precedence(timeline), *_streams(timeline), *_memory(timeline)]


def validate_schedule(problem: Problem, schedule: Schedule) -> list[Violation]:
    """The rules that concern the order alone: every pass exactly once, on its own device, in proper slots."""
    if len(schedule.orders) != problem.devices:
        text = f"the schedule has {len(schedule.orders)} devices, the problem {problem.devices}"
        return [Violation("placement", (), text)]
    return [*_complete(problem, schedule), *_placement(problem, schedule), *_slots(schedule)]


def _complete(problem: Problem, schedule: Schedule) -> Iterator[Violation]:
    held = Counter(schedule.passes())
    for p, times in held.items():
        if times > 1:
            yield Violation("complete", (p,), f"{p} runs {times} times")
    kinds: dict[tuple[int, int], set[PassKind]] = {}
    for p in held:
        kinds.setdefault((p.stage, p.microbatch), set()).add(p.kind)
    expected = {(s, j) for s in range(problem.placement.stages) for j in problem.microbatches_of[s]}
    allowed: list[set[PassKind]] = [{F, BW}] + ([{F, B, W}] if problem.splittable else [])
    for stage, j in sorted(expected):
        found = kinds.get((stage, j), set())
        if found not in allowed:
            have = ", ".join(sorted(f"{k}" for k in found)) or "nothing"
            ways = " or ".join(" ".join(k for k in PassKind if k in way) for way in allowed)
            passes = tuple(Pass(k, stage, j) for k in sorted(found))
            yield Violation("complete", passes, f"stage {stage}, micro-batch {j} runs {have}; it must run {ways}")
    for stage, j in sorted(set(kinds) - expected):
        passes = tuple(Pass(k, stage, j) for k in sorted(kinds[stage, j]))
        yield Violation("complete", passes, f"stage {stage} has no micro-batch {j}, yet the schedule runs {passes[0]}")


def _placement(problem: Problem, schedule: Schedule) -> Iterator[Violation]:
    where = problem.placement.stage_device
    for device in range(len(schedule.orders)):
        for p in schedule.passes_on(device):
            if p.stage < len(where) and where[p.stage] != device:
                text = f"{p} runs on device {device}; stage {p.stage} is placed on device {where[p.stage]}"
                yield Violation("placement", (p,), text)


def _slots(schedule: Schedule) -> Iterator[Violation]:
    for order in schedule.orders:
        for slot in order:
            if len(slot) == 2 and (slot[0].kind is not F or slot[1].kind not in (B, BW)):
                yield Violation("overlap", slot, f"{slot[0]} and {slot[1]} share a slot; only F with B or BW may")


def _times(timeline: Timeline) -> Iterator[Violation]:
    expected: set[Task] = set()
    for p in timeline.schedule.passes():
        expected |= {Task(p)} if timeline.in_block(p) else {task for task, _ in timeline.problem.tasks(p)}
    for task in sorted(expected - set(timeline.starts)):
        yield Violation("times", (task.of,), f"{task} has no start")
    for task in sorted(set(timeline.starts) - expected):
        yield Violation("times", (task.of,), f"{task} has a start but does not stand in the schedule")
    for task, start in timeline.starts.items():
        if start < 0:
            yield Violation("times", (task.of,), f"{task} starts at {amount(timeline.problem, start)}, before time 0")


def _precedence(timeline: Timeline) -> Iterator[Violation]:
    problem, fused = timeline.problem, {(p.stage, p.microbatch) for p in timeline.schedule.passes() if p.kind is BW}
    for p in timeline.schedule.passes():
        for before, lag in problem.needs(p, lambda stage, j: (stage, j) in fused):
            earliest = timeline.end(before) + lag
            if timeline.start(p) < earliest:
                wait = f" and its transfer ends at {amount(problem, earliest)}" if lag else ""
                start, end = amount(problem, timeline.start(p)), amount(problem, timeline.end(before))
                text = f"{p} starts at {start}, but {before} ends at {end}{wait}"
                yield Violation("precedence", (before, p), text)
        if not timeline.in_block(p):
            tasks = list(problem.tasks(p))
            for (task, part), (following, _) in pairwise(tasks):
                if timeline.starts[following] < timeline.starts[task] + part.ticks:
                    yield Violation("precedence", (p,), f"{following} starts before {task} ends")


def _streams(timeline: Timeline) -> Iterator[Violation]:
    """One task at a time on each stream, in the order the schedule gives."""
    for device in range(timeline.problem.devices):
        occupied: dict[Stream, list[_Occupied]] = {}
        for position, slot in enumerate(timeline.schedule.orders[device]):
            if timeline.in_block(slot[0]):
                if {timeline.start(p) for p in slot} != {timeline.start(slot[0])}:
                    yield Violation(
                        "overlap", slot, f"{slot[0]} and {slot[-1]} are one block but do not start together"
                    )
                entry = _Occupied(timeline.start(slot[0]), timeline.end(slot[0]), slot[0], position)
                occupied.setdefault(Stream.COMPUTE, []).append(entry)
                continue
            for p in slot:
                for task, part in timeline.problem.tasks(p):
                    start = timeline.starts[task]
                    occupied.setdefault(part.stream, []).append(_Occupied(start, start + part.ticks, p, position))
        for stream, entries in occupied.items():
            for one, other in pairwise(entries):
                if other.start < one.end:
                    rule = "order" if other.end <= one.start else "overlap"
                    begun, ended = amount(timeline.problem, other.start), amount(timeline.problem, one.end)
                    text = f"device {device}, {stream}: {other.of} starts at {begun}, before {one.of} ends at {ended}"
                    yield Violation(rule, (one.of, other.of), text)


def _memory(timeline: Timeline) -> Iterator[Violation]:
    """On no device do the passes hold more than its capacity; at most one violation a device, the first."""
    problem = timeline.problem
    for device, capacity in enumerate(problem.memory.capacity):
        if capacity is None:
            continue
        events: list[tuple[int, int, bool, int, Pass]] = []
        for position, p in enumerate(timeline.schedule.passes_on(device)):
            taken, returned = problem.memory_change(p)
            events += [(timeline.start(p), position, False, taken, p), (timeline.end(p), position, True, returned, p)]
        level = 0
        for tick, _, _, change, p in sorted(events):
            level += change
            if change > 0 and level > capacity:
                held, limit = memory_text(problem, level), memory_amount(problem, capacity)
                when = f"when {p} starts at {amount(problem, tick)}"
                text = f"device {device} holds {held} {when}; its capacity is {limit}"
                yield Violation("memory", (p,), text)
                break
