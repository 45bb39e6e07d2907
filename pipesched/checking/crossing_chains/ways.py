"""What micro-batches of all chains do on the devices that are looked at, chain by chain."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from pipesched.checking.devices.least_times import LeastTimes, least_durations, least_times
from pipesched.checking.diagram.walk import Numbers, admitted_to, blocks_of, left_open, room_on, soonest_on
from pipesched.checking.finding import NotCoveredError, RefusedEvidenceError
from pipesched.problem.problem import Objective, Problem

# Beyond these the check would take minutes, or numbers more than 64 bits.
MOST_TICKS, _MOST_STATES = 2**50, 2**62
NO_STEP = -1


class Ways(NamedTuple):
    """What micro-batches of all chains do on the devices, chain by chain. Arrays by step, or by device.

    `before` is the time from the end of the step before it, or from 0, `after` what a backward takes when its gradient
    has run, `behind` the least time from a step's end until the micro-batch is done. `earlier` is the step before or
    -1, `final` the last one of the chain, `number` how many run it, `column` where the times of those under way begin,
    the first one first; `columns` are all of these. `soonest[n, d]` is the least time from the end of the step before
    n to a step on device d from n on, -1 where there is none; `together[n, g]` what a block of the two takes, or -1.

    Where only the `owner`'s time counts, else -1, `behind` is the time until its chain's last step there has ended, or
    far below 0, and `past` is a time so early that all steps after it may have ended by 0.

    `room` is -1 without a limit, `open_` the least memory of a weight pass that has not run, `weight` the longest.
    `won` is what a block may save of all that its passes take, `won_at_once` of forward and gradient.
    """

    device: Numbers
    ticks: Numbers
    after: Numbers
    before: Numbers
    behind: Numbers
    memory: Numbers
    backward: Numbers
    earlier: Numbers
    final: Numbers
    number: Numbers
    column: Numbers
    soonest: Numbers
    together: Numbers
    room: Numbers
    open_: Numbers
    weight: Numbers
    won: Numbers
    won_at_once: Numbers
    columns: int
    owner: int
    past: int


class _Step(NamedTuple):
    """A pass of a stage that is looked at: its earliest start, and when its micro-batch is done at the earliest."""

    stage: int
    backward: bool
    start: int
    done: int


def ways_on(problem: Problem, devices: tuple[int, ...]) -> Ways:
    """The steps of all chains on these devices; others are time that passes."""
    times, stages, where = least_times(problem), problem.stages, problem.placement.stage_device
    chains = [list(_steps(problem, times, chain, devices)) for chain in problem.placement.chains]
    chains = [chain for chain in chains if chain]
    every = [step for chain in chains for step in chain]
    if not every:
        raise RefusedEvidenceError(f"no micro-batch comes to devices {list(devices)}")
    earlier, final, column, columns = list[int](), list[int](), list[int](), 0
    for chain in chains:
        since = len(earlier)
        earlier += [NO_STEP, *range(since, since + len(chain) - 1)]
        final += [since + len(chain) - 1] * len(chain)
        column += [columns] * len(chain)
        columns += admitted_to(problem, chain[0].stage)
    device = np.array([devices.index(where[one.stage]) for one in every], np.int64)
    least = np.array([times[s].gradient if back else times[s].forward for s, back, _, _ in every], np.int64)
    # Every block is one of two that are looked at, so outside of those all take their own time.
    own = {one.stage: least_durations(problem, one.stage, ()) for one in every}
    ticks = np.array([own[s][1] if back else own[s][0] for s, back, _, _ in every], np.int64)
    after = np.array([own[s][2] - own[s][1] if back else 0 for s, back, _, _ in every], np.int64)
    start, only = np.array([one.start for one in every], np.int64), problem.objective is Objective.SPAN
    if only:  # a chain's first step here may come at any time
        start -= np.array([chain[0].start for chain in chains for _ in chain], np.int64)
    ends = np.where(np.array(earlier) == NO_STEP, 0, np.roll(start + least, 1))
    count = np.array([len(problem.microbatches_of[one.stage]) for one in every], np.int64)
    most = int((count * (start + ticks + after)).sum())
    if most > MOST_TICKS or (int(count.max()) + 1) ** len(every) > _MOST_STATES:
        raise NotCoveredError("numbers of too many digits")
    behind = np.array([one.done for one in every], np.int64) - start - least
    if only:
        behind = _until_last_on_first(device, start + least, final, -4 * most)
    backward = np.array([one.backward for one in every])
    together = blocks_of(problem, [one.stage for one in every], device, backward)
    backs = [[one.stage for one in every if one.backward and where[one.stage] == own] for own in devices]
    left = [[left_open(problem, stage) for stage in own] for own in backs]
    return Ways(
        device=device,
        ticks=ticks,
        after=after,
        before=start - ends,
        behind=behind,
        memory=np.array([stages[s].activation * (-1 if back else 1) for s, back, _, _ in every], np.int64),
        backward=backward.astype(np.int64),
        earlier=np.array(earlier, np.int64),
        final=np.array(final, np.int64),
        number=count,
        column=np.array(column, np.int64),
        soonest=soonest_on(device, start, ends, final, len(devices)),
        together=together,
        room=np.array([room_on(problem, own) for own in devices], np.int64),
        open_=np.array([max(0, min(own, default=0)) for own in left], np.int64),
        weight=np.array([after[device == one].max(initial=0) for one in range(len(devices))]),
        won=_won(device, ticks + after, together, len(devices)),
        won_at_once=_won(device, ticks, together, len(devices)),
        columns=columns,
        owner=0 if only else NO_STEP,
        past=-2 * most if only else 0,
    )


def _until_last_on_first(device: Numbers, end: Numbers, final: list[int], never: int) -> Numbers:
    """From the end of each step to that of the last one of its chain on the first device; `never` behind that one."""
    found = np.full(len(device), never, np.int64)
    for step, last in enumerate(final):
        on_it = [n for n in range(step, last + 1) if device[n] == 0]
        if on_it:
            found[step] = end[on_it[-1]] - end[step]
    return found


def _steps(
    problem: Problem, times: list[LeastTimes], chain: tuple[int, ...], devices: tuple[int, ...]
) -> Iterator[_Step]:
    """Those of a chain that some micro-batches walk; it is done with its first stage's backward, or here with less."""
    where, first = problem.placement.stage_device, times[chain[0]]
    if not len(problem.microbatches_of[chain[0]]):
        return
    # What a backward has left on a device that is looked at counts there.
    done = first.turns + (first.gradient if where[chain[0]] in devices else first.backward)
    kept = [stage for stage in chain if where[stage] in devices]
    for stage in kept:
        yield _Step(stage, False, times[stage].begins, done)
    for stage in reversed(kept):
        yield _Step(stage, True, times[stage].turns, done)


def _won(device: Numbers, work: Numbers, together: Numbers, devices: int) -> Numbers:
    """By device the most that a block takes less than its two passes, and no less than 0."""
    found = np.zeros(devices, np.int64)
    for n, g in zip(*np.nonzero(together >= 0), strict=True):
        found[device[n]] = max(found[device[n]], work[n] + work[g] - together[n, g])
    return found
