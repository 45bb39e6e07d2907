"""Rules of orders: every pass exactly once, on its own device, in valid slots."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from pipesched.problem.pass_names import pass_text, stage_text
from pipesched.problem.passes import BW, OF_PARAMETERS, ONCE, RESHARD, UNSHARD, B, F, Pass, PassKind, W
from pipesched.problem.problem import Problem
from pipesched.problem.quantities import MicrobatchId, StageId
from pipesched.schedule.pass_table import Ints
from pipesched.schedule.schedule import Schedule
from pipesched.validation.pass_rules import run_once, saving_options
from pipesched.validation.violation import Violation


def complete(problem: Problem, schedule: Schedule) -> Iterator[Violation]:
    """Yield violations unless each micro-batch runs an allowed set of passes on each stage, and nothing else runs."""
    columns, none = schedule.columns, np.zeros(0, np.int64)
    numbers_of = {
        pass_type: columns.microbatch[columns.pass_type == n] for n, pass_type in enumerate(columns.pass_types)
    }
    others = {pass_type for pass_type in columns.pass_types if pass_type[0] not in (F, B, W, BW)}
    for stage, walked in enumerate(problem.microbatches_of):
        bases = [{F, BW}] + ([{F, B, W}] if W in problem.stages[stage].kinds else [])
        alternatives = [base | saving for base in bases for saving in saving_options(problem, stage)]
        known = [F, B, W, BW, *sorted({kind for kind, s in others if s == stage}.union(*alternatives) - {F, B, W, BW})]
        known = [kind for kind in known if kind not in OF_PARAMETERS]
        times = {kind: _times_in(numbers_of.get((kind, stage), none), walked) for kind in known}
        right = np.any([np.all([times[k] == (k in kinds) for k in known], axis=0) for kinds in alternatives], axis=0)
        for place in np.flatnonzero(~right).tolist():
            yield from _not_once(problem, stage, walked[place], {k: int(times[k][place]) for k in known}, alternatives)
    once = Counter(p for p in columns.passes if p.kind in ONCE)
    twice = Counter(p for p in columns.passes if p.kind in (UNSHARD, RESHARD))
    yield from (
        Violation("complete", (p,), f"{pass_text(problem, p)} runs {often(n)}; it must run once")
        for p, n in sorted(twice.items())
        if n > 1
    )
    allowed = {p for stage in range(problem.placement.stages) for p in run_once(problem, stage)}
    for p in sorted(once.keys() | allowed):
        if once[p] != (p in allowed):
            must = "once an iteration" if p in allowed else "not at all"
            yield Violation("complete", (p,), f"{pass_text(problem, p)} runs {often(once[p])}; it must run {must}")
    numbers_of = {of: numbers for of, numbers in numbers_of.items() if of[0] not in OF_PARAMETERS}
    unknown: dict[tuple[int, int], list[Pass]] = {}
    for (kind, stage), numbers in sorted(numbers_of.items(), key=lambda one: one[0]):
        walked = problem.microbatches_of[stage] if stage < problem.placement.stages else range(0)
        for j in np.unique(numbers[(numbers < walked.start) | (numbers >= walked.stop)]).tolist():
            unknown.setdefault((stage, j), []).append(Pass(kind, stage, j))
    for (stage, j), passes in sorted(unknown.items()):
        text = f"stage {stage} has no micro-batch {j}, yet the schedule runs {passes[0]}"
        yield Violation("complete", tuple(passes), text)


def often(count: int) -> str:
    """Return a number of times as text: `not at all`, `once`, `2 times`."""
    return {0: "not at all", 1: "once"}.get(count, f"{count} times")


def _times_in(numbers: Ints, walked: range) -> Ints:
    """Return how often each micro-batch of the range `walked` occurs among `numbers`, as an array."""
    inside = numbers[(numbers >= walked.start) & (numbers < walked.stop)]
    return np.bincount(inside - walked.start, minlength=len(walked))


def _not_once(
    problem: Problem, stage: StageId, j: MicrobatchId, times: dict[PassKind, int], alternatives: list[set[PassKind]]
) -> Iterator[Violation]:
    """Yield violations where passes of a micro-batch run twice, or do not together form one of the `alternatives`."""
    found = sorted(kind for kind in times if times[kind])
    for kind in found:
        if times[kind] > 1:
            p = Pass(kind, stage, j)
            yield Violation("complete", (p,), f"{pass_text(problem, p)} runs {times[kind]} times")
    if set(found) not in alternatives:
        have = ", ".join(found) or "nothing"
        allowed = " or ".join(" ".join(k for k in PassKind if k in kinds) for kinds in alternatives)
        passes = tuple(Pass(kind, stage, j) for kind in found)
        yield Violation("complete", passes, f"{stage_text(problem, stage, j)} runs {have}; it must run {allowed}")


def placement(problem: Problem, schedule: Schedule) -> Iterator[Violation]:
    """Yield violations for passes that are not on the device of their stage."""
    columns, where = schedule.columns, dict(enumerate(problem.placement.stage_device))
    placed = columns.each(lambda _, stage: where.get(stage, -1))
    for row in np.flatnonzero((placed >= 0) & (placed != columns.device)).tolist():
        p = columns.passes[row]
        stage, own = p.stage // problem.chain_arcs.pieces, where[p.stage]
        text = f"{pass_text(problem, p)} runs on device {columns.device[row]}; stage {stage} is placed on device {own}"
        yield Violation("placement", (p,), text)


def queues(problem: Problem, schedule: Schedule) -> Iterator[Violation]:
    """Yield violations of a fixed order of micro-batches in the forwards, or the backwards, of a queue of stages.

    For schedules that contain every pass once and give no orders of tasks.
    """
    if not problem.walks.queues:
        return
    place = {p: row for row, p in enumerate(schedule.columns.passes)}
    for one, other in in_fixed_order(problem, schedule):
        if place[other] < place[one]:
            yield out_of_turn(problem, one, other)


def out_of_turn(problem: Problem, one: Pass, other: Pass) -> Violation:
    """Return the violation that pass `other` runs before `one`, which precedes it in the order of micro-batches."""
    late, early = pass_text(problem, other), pass_text(problem, one)
    text = f"{late} comes before {early}, but the order of micro-batches is fixed"
    return Violation("micro-batch order", (other, one), text)


def in_fixed_order(problem: Problem, schedule: Schedule) -> Iterator[tuple[Pass, Pass]]:
    """Yield pairs of passes that must run in this order because the order of micro-batches is fixed.

    A pair is the forwards, or the backwards, of consecutive micro-batches on the stages of one queue (`Walks.queues`).
    """
    lines: dict[tuple[bool, int], list[Pass]] = {}
    for p in schedule.columns.passes if problem.walks.queues else ():
        if p.kind in (F, B, BW):
            lines.setdefault((p.kind is F, problem.walks.queues[p.stage]), []).append(p)
    for line in lines.values():
        yield from pairwise(sorted(line, key=lambda p: p.microbatch))


def slots(problem: Problem, schedule: Schedule) -> Iterator[Violation]:
    """Yield violations for slots shared by passes other than a forward followed by a B or BW."""
    columns = schedule.columns
    shared = (columns.device[1:] == columns.device[:-1]) & (columns.slot[1:] == columns.slot[:-1])
    forward = columns.each(lambda kind, _: kind is F).astype(bool)
    backward = columns.each(lambda kind, _: kind in (B, BW)).astype(bool)
    for row in np.flatnonzero(shared & ~(forward[:-1] & backward[1:])).tolist():
        slot = columns.passes[row], columns.passes[row + 1]
        one, other = (pass_text(problem, p) for p in slot)
        yield Violation("overlap", slot, f"{one} and {other} share a slot; only F with B or BW may")
