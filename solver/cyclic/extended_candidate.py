"""Results of a published schedule of very many micro-batches computed exactly from its schedule of fewer.

The schedule of fewer micro-batches is extended by repeating a part of it (`replication`), to a few rounds of that part,
and simulated. Suppose that every pass of the last rounds starts a constant time after the pass in its place some rounds
before, over more rounds than any dependency reaches back. Then so does every further round, by induction along the
order of starts, and so do the passes after the rounds: makespan and span are linear in the number of rounds, and no
device ever uses more memory.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from heuristics.catalogue import Heuristic
from pipesched.errors import Deadlock
from pipesched.problem.attainable_spans import Value
from pipesched.problem.passes import BW, B, F, W
from pipesched.problem.problem import Problem
from pipesched.problem.quantities import Ticks
from pipesched.results.candidate import Candidate
from pipesched.schedule.metrics import Metrics, work_of_rows
from pipesched.schedule.pass_table import Ints
from pipesched.schedule.timeline import Timeline
from solver.cyclic.replication import Cut, repeated, repeating, shortened
from solver.parameters import tunable, tuned
from solver.published import candidate, simulated_and_validated

_PLAIN = {F, B, W, BW}


@dataclass(frozen=True)
@tunable
class ExtensionParams:
    """Length of the schedule that is simulated to see if every further round takes equally long."""

    longer: tuple[int, ...] = tuned(
        (2, 8), "times the micro-batches of the shorter problem, one after the other", 2, 64,
        "nearly all published schedules are steady after two",
    )  # fmt: skip
    most_rounds: int = tuned(64, "rounds at most, after which start times recur", 1, 1000)


_PARAMS = ExtensionParams()


def extended_candidate(problem: Problem, heuristic: Heuristic) -> Candidate | None:
    """Return the result of a published schedule, without a timeline, computed from its schedule of fewer micro-batches.

    The objective must be makespan or span. None if the figures are not known to be exact, or if the shorter schedule is
    not much shorter. If the schedule does not apply to the shorter problem, the result is that on the problem itself,
    mostly a refusal.
    """
    short = shortened(problem) if _covers(problem) else None
    if short is None:
        return None
    known = candidate(short, heuristic).timeline
    if known is None:
        return candidate(problem, heuristic)
    if not {kind for kind, _ in known.schedule.columns.pass_types} <= _PLAIN:
        return None
    cuts = list(repeating(known))
    for longer in _PARAMS.longer:
        least = longer * short.microbatches
        if 2 * least > problem.microbatches:
            return None
        tried = (_extended(problem, known, *pair, least, heuristic.name) for pair in cuts)
        found = [one for one in tried if one is not None]
        if found:
            return min(found, key=_value)
    return None


def beats(found: Candidate, known: Value | None) -> bool:
    """Return True if the candidate's objective value is less than `known` ticks, or if `known` is None."""
    return known is None or _value(found) < known


def _covers(problem: Problem) -> bool:
    """Return True if each pass is one task and waits only for its device and its own micro-batch.

    Streams shared by devices, and shares of micro-batches between chains, are not covered.
    """
    return problem.view is not None and not (problem.walks.shares or problem.resources.shared_streams)


def _value(one: Candidate) -> Ticks:
    assert one.metrics is not None
    return one.metrics.value_ticks(one.metrics.problem.objective)


def _extended(problem: Problem, known: Timeline, one: Cut, other: Cut, least: int, name: str) -> Candidate | None:
    """Return the candidate for `problem` from `known`, whose part between the cuts `one` and `other` is repeated.

    It is computed from a simulated schedule of at least `least` micro-batches, at most those of `problem`. The number
    that this lacks must be a multiple of the micro-batches of its steady part, so it may have a few more. The candidate
    has no timeline; its makespan, span and work are extended, its peak memory is that of the simulated schedule. None
    if this does not become steady, or there is no such number. `name` is the schedule's name.
    """
    round_ = (other.through - one.through) * len(problem.placement.chains)
    few = least + (problem.microbatches - least) % round_
    found = _steady(known, one, other, replace(problem, microbatches=few), name)
    surplus = 0 if found is None else (problem.microbatches - few) // round_ % found.rounds
    if surplus:
        few += surplus * round_
        found = _steady(known, one, other, replace(problem, microbatches=few), name)
    if found is None or (problem.microbatches - few) % (found.rounds * round_):
        return None
    times, own = (problem.microbatches - few) // (found.rounds * round_), found.of.metrics
    assert own is not None
    metrics = Metrics(
        problem,
        makespan_ticks=own.makespan_ticks + times * found.shift,
        span_ticks=own.span_ticks + times * found.shift,
        work_ticks=tuple(before + times * more for before, more in zip(own.work_ticks, found.work, strict=True)),
        peak_quanta=own.peak_quanta,
    )
    return replace(found.of, timeline=None, metrics=metrics, extended_from=few)


class _Steady(NamedTuple):
    """A candidate whose last rounds recur: every `rounds` rounds take `shift` ticks, `work[d]` of them on device d.

    A round is one repetition of the repeated part of its schedule.
    """

    of: Candidate
    rounds: int
    shift: Ticks
    work: list[Ticks]


def _steady(known: Timeline, one: Cut, other: Cut, trial: Problem, name: str) -> _Steady | None:
    """Simulate `known`, extended to the micro-batches of `trial`, and return it if its last rounds recur; else None.

    The part between the cuts `one` and `other` is repeated, once in each round. Rounds recur if every pass of the last
    rounds starts and ends a constant time after its counterpart some rounds before, over as many rounds as a dependency
    can reach back. From the first round that lacks passes, since micro-batches in excess are left out, all passes count
    as the part after the last round. None also if the schedule deadlocks or breaks the required order of micro-batches.
    `name` is the schedule's name.
    """
    try:
        longer = repeated(known, one, other, trial)
        validated = simulated_and_validated(trial, longer.schedule, name)
    except Deadlock:
        return None
    if validated.timeline is None:
        return None
    sizes = np.bincount(longer.rounds[longer.rounds >= 0])
    whole = int(np.argmax(sizes != sizes[0])) if (sizes != sizes[0]).any() else len(sizes)
    if whole < 2:
        return None
    number, columns = np.minimum(longer.rounds, whole), validated.timeline.schedule.columns
    reach = _reach(columns.microbatch, number, whole)
    rows = np.stack([np.flatnonzero(number == each) for each in range(whole)])
    if any((np.diff(column[rows], axis=0) != 0).any() for column in (columns.pass_type, columns.device)):
        return None
    begin, end = (ticks[rows] for ticks in validated.timeline.times)
    for rounds in range(1, min(_PARAMS.most_rounds, whole - reach - 1) + 1):
        last = slice(whole - reach - 1, whole)
        before = slice(whole - reach - 1 - rounds, whole - rounds)
        shift = begin[-1, 0] - begin[-1 - rounds, 0]
        if all((ticks[last] - ticks[before] == shift).all() for ticks in (begin, end)):
            repeating_rows = rows[whole - rounds :].ravel()
            ticks, on = work_of_rows(validated.timeline)[repeating_rows], columns.device[repeating_rows]
            work = [int(ticks[on == device].sum()) for device in range(trial.devices)]
            return _Steady(validated, rounds, int(shift), work)
    return None


def _reach(microbatch: Ints, number: Ints, most: int) -> int:
    """Return an upper bound, at least 1, on the number of rounds between a pass and a predecessor.

    Predecessors are on its device or of its micro-batch; the bound is the distance between the first and the last round
    with passes of one micro-batch. The arrays have the micro-batch and the round (`number`) of each pass; `most` is no
    less than any round.
    """
    low, high = np.full(microbatch.max() + 1, most), np.full(microbatch.max() + 1, -1)
    np.minimum.at(low, microbatch, number)
    np.maximum.at(high, microbatch, number)
    return max(1, int((high - low).max()))
