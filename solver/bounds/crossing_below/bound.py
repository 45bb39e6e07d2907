"""The bound by crossings of steps below a value: only orders that may end below it are followed.

A pass backwards with one label a state says how long the rest takes at least. A label from which nothing ends before
the value is left out; so fewer labels of a state have to be merged than where all are followed. What is left ends at
the least of their ends, and what was left out at the value or later: the lesser of the two is proved. Values are tried
between what is proved and the value of a schedule; the pass backwards is the same for all.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import ceil
from threading import Event
from typing import NamedTuple

import numpy as np

from pipesched.problem.formatting import amount, counted
from pipesched.problem.problem import Problem
from pipesched.results.certificate import Certificate
from pipesched.results.evidence import CrossingStepsBelow
from solver.bounds.analytic.critical_paths import Paths
from solver.bounds.crossing_below.remaining import Remaining, below, remaining
from solver.bounds.crossing_steps.layers import NEVER, Layer, _slices, merged, successors
from solver.bounds.crossing_steps.steps import Numbers, Steps, state_count, steps_of, walked_chains

# The name of its certificates.
KIND = "crossings of steps below a value"
# Labels looked at in all, and by one call of compiled code; numbers of the pass backwards, four bytes each.
WORK, _AT_ONCE, MOST_NUMBERS = 40_000_000, 50_000, 50_000_000
# The first value tried is so much of the gap above what is proved, the last step a quarter of that.
_STEP = 16
# Memory leaves out many states that are counted before they are looked at: up to so many times those that there are.
_OVERSTATED = 4


class Least(NamedTuple):
    """The least ticks from the first step to the end of what counts, or the value if that is less; the labels seen.

    None where these were too many.
    """

    ticks: int | None
    work: int


def crossing_bounds_below(
    problem: Problem,
    stop: Event,
    proved: float,
    known: float,
    widths: Sequence[int] = (64,),
    work: int = WORK,
    numbers: int = MOST_NUMBERS,
) -> Iterator[Certificate]:
    """Above what is `proved`, up to the value of a schedule that is `known`: each above those before, in ticks.

    Nothing where blocks overlap a forward and a backward, or a pass is several tasks.
    """
    if problem.overlaps or problem.network.options or not problem.network.one_task_each:
        return
    paths, best, until = Paths(problem), ceil(proved), ceil(known)
    for chain in walked_chains(problem):
        for devices in device_sets(problem, chain):
            steps = steps_of(problem, paths, chain, devices)
            if steps is None or best >= until or _numbers(problem, chain, devices, steps) > _OVERSTATED * numbers:
                continue
            rest = remaining(steps, numbers, stop)
            if rest is None:
                continue
            work -= sum(map(len, rest.keys))
            for width in widths:
                for value, least in _raised(steps, rest, width, best, until, work, stop):
                    work -= least.work
                    if least.ticks is not None and least.ticks > best:
                        best, own = least.ticks, CrossingStepsBelow(chain[0], devices, width, value)
                        yield _certificate(problem, chain, best, own)
                if work <= 0 or stop.is_set():
                    return


def device_sets(problem: Problem, chain: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """The first device of a chain, and others in even steps up to the last: first the most of them."""
    first, *others = dict.fromkeys(problem.placement.stage_device[stage] for stage in chain)
    for count in range(min(len(others), 4), 0, -1):
        yield (first, *(others[len(others) * n // count - 1] for n in range(1, count + 1)))


def _numbers(problem: Problem, chain: Sequence[int], devices: Sequence[int], steps: Steps) -> int:
    """About how many numbers the pass backwards has at most."""
    layers = len(steps.ticks) * steps.microbatches
    return state_count(problem, chain, devices) * layers * (steps.in_flight + 2 * len(devices))


def _raised(
    steps: Steps, rest: Remaining, width: int, proved: int, known: int, work: int, stop: Event
) -> Iterator[tuple[int, Least]]:
    """Values and what was proved with them: steps above what is proved, twice as large after one that was reached."""
    step = max(1, (known - proved) // _STEP)
    least_step = max(1, step // 4)
    while proved < known and work > 0 and not stop.is_set():
        value = min(known, proved + step)
        least = least_below(steps, rest, width, value, work, stop)
        yield value, least
        work -= least.work
        if least.ticks == value:
            proved, step = value, 2 * step
        else:
            if step <= least_step:
                return
            proved, step = max(proved, least.ticks or 0), step // 2


def least_below(steps: Steps, rest: Remaining, width: int, value: int, work: int, stop: Event) -> Least:
    """The least end of the orders that are followed, by dynamic programming; of those left out, the value."""
    labels = np.zeros((1, steps.in_flight + 2 * len(steps.room)), np.int64)
    layer, best, used, done = Layer(np.zeros(1, np.int64), np.array([0, 1], np.int64), labels), NEVER, 0, 0
    while len(layer.keys):
        keys, labels, ended, seen = _followed(layer, steps, rest, done, value, stop)
        best, used, done = min(best, ended), used + seen, done + 1
        if used > work or stop.is_set():
            return Least(None, used)
        order = np.argsort(keys, kind="stable")
        layer = Layer(*merged(keys[order], labels[order], width)[:3])
    return Least(min(best, value), used)


def _followed(
    layer: Layer, steps: Steps, rest: Remaining, done: int, value: int, stop: Event
) -> tuple[Numbers, Numbers, int, int]:
    """Keys and labels after one step more that may end below the value; the least end; how many labels were seen."""
    parts, ended, seen = [(np.empty(0, np.int64), np.empty((0, layer.labels.shape[1]), np.int64))], NEVER, 0
    for since, until in _slices(layer.first, _AT_ONCE // (steps.in_flight + 1)):
        if stop.is_set():
            break
        keys, labels, least = successors(layer, since, until, steps, done)
        stay = below(keys, labels, rest.keys[done + 1], rest.rests[done + 1], value)
        parts, ended, seen = [*parts, (keys[stay], labels[stay])], min(ended, least), seen + len(keys)
    keys, labels = (np.concatenate(column) for column in zip(*parts, strict=True))
    return keys, labels, ended, seen


def _certificate(problem: Problem, chain: Sequence[int], least: int, own: CrossingStepsBelow) -> Certificate:
    devices, count = own.devices, len(problem.microbatches_of[chain[0]])
    where = f"device {devices[0]}" if len(devices) == 1 else f"devices {', '.join(map(str, devices))}"
    stages = counted(sum(problem.placement.stage_device[stage] in devices for stage in chain), "stage")
    text = (
        f"On {where} the forwards and gradients of {stages} of a chain take turns: a device runs one at a time, "
        f"and starts a forward only while its memory has room for it; a micro-batch is away for as long as other "
        f"devices take. Orders that cannot end before {amount(problem, own.below)} are not followed to their end; in "
        f"whichever order they run, all {count} micro-batches take at least {amount(problem, least)}."
    )
    return Certificate(KIND, least, text, devices[0], own)
