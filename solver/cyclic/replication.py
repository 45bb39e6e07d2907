"""Replication: a schedule of many micro-batches from a schedule of few, whose periodic part is repeated.

Between two instants with the same state (the same passes started, counted from the first incomplete micro-batch), a
schedule has run all passes of k micro-batches, as a pattern does. This part can be repeated any number of times: its
precedences are satisfied, and the memory in use is the same at both instants. Warm-up and cool-down stay as the search
found them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from pipesched.errors import Deadlock
from pipesched.problem.passes import F
from pipesched.problem.problem import Problem
from pipesched.problem.quantities import DeviceId
from pipesched.schedule.metrics import measure
from pipesched.schedule.pass_table import Ints, PassTable
from pipesched.schedule.schedule import Schedule
from pipesched.schedule.timeline import Timeline
from solver.construction.timing import best_times
from solver.parameters import tunable, tuned


@dataclass(frozen=True)
@tunable
class ReplicationParams:
    """Sizes of the shorter problems whose schedules are extended by repeating a period."""

    short_passes: int = tuned(5_000, "passes of the shorter problem", 100, 10**6)
    least_per_device: int = tuned(3, "micro-batches a device and chain, whatever the passes", 1, 100)
    most_per_device: int = tuned(8, "micro-batches a device and chain", 1, 100)
    most_copies: int = tuned(8, "micro-batches of one period", 1, 64)


_PARAMS = ReplicationParams()


class Cut(NamedTuple):
    """A moment of a schedule, by the passes that have begun on each chain.

    All passes of the first `through` micro-batches of each chain have begun, and some of later ones. `begun` says which
    of the latter, as the bytes of a Boolean array by type of pass and micro-batch, counted from `through` on each
    chain. `places[d]` is the number of slots that device d has begun.
    """

    through: int
    begun: bytes
    places: tuple[int, ...]


def shortened(problem: Problem) -> Problem | None:
    """Return the same problem with just enough micro-batches for its schedules to be extended by repetition.

    All chains have equally many. None unless they are at most half of the problem's.
    """
    chains = len(problem.placement.chains)
    most = _PARAMS.short_passes // (3 * problem.placement.stages)
    least, ample = _PARAMS.least_per_device * problem.devices, _PARAMS.most_per_device * problem.devices
    few = chains * max(least, min(ample, most))
    # Here chains have equal numbers of micro-batches; if the problem's do not, the excess is dropped at the end.
    return replace(problem, microbatches=few) if 2 * few <= problem.microbatches else None


class ExtendableSchedule(NamedTuple):
    """A schedule with a part, between the cuts `one` and `other`, that is to be repeated.

    `value` is the objective of the schedule with three times its micro-batches, in the file's unit of time, as
    timelines of one problem may have different ticks.
    """

    value: Fraction
    timeline: Timeline
    one: Cut
    other: Cut

    def over(self, problem: Problem) -> Schedule:
        """Return the schedule for `problem`, the same one with more micro-batches, in which the part is repeated."""
        return repeated(self.timeline, self.one, self.other, problem).schedule


class Repeated(NamedTuple):
    """A schedule with a repeated part, and the round of that part for each row of the schedule's columns.

    Rounds count from 0. Rows before the first round have -1, rows after the last one the number of rounds.
    """

    schedule: Schedule
    rounds: Ints


def repeated_note(short: Problem) -> str:
    """Return the note for the user that the schedule was extended from one of `short`, with fewer micro-batches."""
    return f"this is a schedule of {short.microbatches} micro-batches with its middle repeated"


def best_extendable(timelines: Iterable[Timeline]) -> ExtendableSchedule | None:
    """Return the extendable schedule of least value over timelines of one problem.

    None if no timeline repeats anything.
    """
    found = (extendable for timeline in timelines for extendable in _extendable(timeline))
    return min(found, key=lambda extendable: extendable.value, default=None)


def _extendable(timeline: Timeline) -> Iterator[ExtendableSchedule]:
    short = timeline.problem
    trial = replace(short, microbatches=3 * short.microbatches)
    for one, other in repeating(timeline):
        try:
            longer = best_times(trial, repeated(timeline, one, other, trial).schedule)
        except Deadlock:
            # A slot of two passes that run in turn may begin before the cut, with its second pass waiting for a later
            # one.
            continue
        yield ExtendableSchedule(
            measure(longer).value_ticks(short.objective) * longer.problem.tick, timeline, one, other
        )


def repeating(timeline: Timeline) -> Iterator[tuple[Cut, Cut]]:
    """Yield pairs of cuts between which a schedule may be repeated.

    There is one for each number of micro-batches of a chain between them, in ascending order, the earlier cut first. At
    both cuts of a pair the same passes are under way. Of all pairs with one number, which is at most `most_copies`, it
    is the middle one. Numbers without a pair are skipped, and so are multiples of a number already found.
    """
    cuts, alike = list(_cuts(timeline)), dict[bytes, list[Cut]]()
    for cut in cuts:
        alike.setdefault(cut.begun, []).append(cut)
    found: list[int] = []
    for copies in range(1, _PARAMS.most_copies + 1):
        if any(copies % smaller == 0 for smaller in found):
            continue
        pairs = [(a, b) for a in cuts for b in alike[a.begun] if b.through - a.through == copies]
        if pairs:
            found.append(copies)
            yield pairs[len(pairs) // 2]


def _cuts(timeline: Timeline) -> Iterator[Cut]:
    """Yield the cut at each instant, after the first, when a micro-batch starts on the first chain, by time."""
    problem, columns = timeline.problem, timeline.schedule.columns
    entry = F, problem.placement.chains[0][0]
    opens = np.diff(columns.slot, prepend=-1).astype(bool) | np.diff(columns.device, prepend=-1).astype(bool)
    # When the slot of each row starts, as a rank, since times may be numbers of any size.
    _, rank = np.unique(timeline.times[0], return_inverse=True)
    start = rank[np.flatnonzero(opens)[np.cumsum(opens) - 1]]
    first = np.array([problem.microbatches_of[stage].start for _, stage in columns.pass_types])
    number = columns.microbatch - first[columns.pass_type]
    never, most = len(rank), int(number.max()) + 1
    begins, latest, soonest = np.full((len(columns.pass_types), most), never), np.zeros(most, int), np.full(most, never)
    begins[columns.pass_type, number] = start
    np.maximum.at(latest, number, start)
    np.minimum.at(soonest, number, start)
    complete = np.maximum.accumulate(latest)
    sets_out = np.unique(start[opens & columns.each(lambda *pass_type: pass_type == entry).astype(bool)])
    of_device = [start[on][opens[on]] for on in map(columns.on, range(problem.devices))]
    for moment in sets_out[sets_out > 0].tolist():
        through = int(np.searchsorted(complete, moment))
        under_way = np.flatnonzero(soonest[through:] < moment)
        begun = begins[:, through : through + int(under_way.max(initial=-1)) + 1] < moment
        yield Cut(through, begun.tobytes(), tuple(int(np.searchsorted(on, moment)) for on in of_device))


def repeated(timeline: Timeline, one: Cut, other: Cut, problem: Problem) -> Repeated:
    """Return the schedule of `timeline` with the part between its cuts `one` and `other` repeated.

    `problem` is the timeline's with more micro-batches; the part is repeated until there are enough. Micro-batches in
    excess are left out, which breaks nothing: the predecessors of the others stay, and memory use does not increase.
    """
    copies = other.through - one.through
    here, there = timeline.problem.microbatches_of, problem.microbatches_of
    times = -(-(len(there[0]) - len(here[0])) // copies)
    columns = timeline.schedule.columns
    parts = [
        _rows(columns, device, *cut, times) for device, cut in enumerate(zip(one.places, other.places, strict=True))
    ]
    rows, number, slot = (np.concatenate(column) for column in zip(*parts, strict=True))
    rounds = np.clip(number, 0, times)
    stage = np.array([stage for _, stage in columns.pass_types])[columns.pass_type[rows]]
    moved = np.array([new.start - old.start for old, new in zip(here, there, strict=True)])
    microbatch = columns.microbatch[rows] + moved[stage] + copies * rounds
    kept = microbatch < np.array([new.stop for new in there])[stage]
    rows, microbatch, slot, number = rows[kept], microbatch[kept], slot[kept], number[kept]
    device = columns.device[rows]
    # Empty slots are removed, and later ones move up.
    place = np.cumsum((np.diff(slot, prepend=-1) != 0) | (np.diff(device, prepend=-1) != 0))
    slot = place - place[np.searchsorted(device, device)]
    longer = PassTable(columns.devices, device, slot, microbatch, columns.pass_type[rows], columns.pass_types)
    return Repeated(Schedule(longer, "stretched"), number)


def _rows(columns: PassTable, device: DeviceId, begin: int, end: int, times: int) -> tuple[Ints, Ints, Ints]:
    """Return a device's rows as three arrays, with those of slots from `begin` to before `end` run `times` times more.

    For each row: its index in the columns, the round of the repeated part (-1 before the first, `times` + 1 after the
    last), and its slot.
    """
    of_device = columns.on(device)
    first, last = (of_device.start + np.searchsorted(columns.slot[of_device], (begin, end))).tolist()
    again = np.tile(np.arange(first, last), times)
    rows = np.concatenate([np.arange(of_device.start, last), again, np.arange(last, of_device.stop)])
    lengths = [first - of_device.start, *[last - first] * (times + 1), of_device.stop - last]
    number = np.repeat(np.arange(-1, times + 2), lengths)
    return rows, number, columns.slot[rows] + np.clip(number, 0, times) * (end - begin)
