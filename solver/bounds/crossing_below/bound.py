"""The bound by crossings of steps below a value: only orders, and blocks, that may end below it are followed.

A pass backwards with one label a state says how long the rest takes at least. A label from which nothing ends before
the value is left out; so fewer labels of a state have to be merged than where all are followed. What is left ends at
the least of their ends, and what was left out at the value or later: the lesser of the two is proved. Values are tried
between what is proved and the value of a schedule; the pass backwards is the same for all.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import ceil
from threading import Event

from pipesched.problem.formatting import amount, counted
from pipesched.problem.problem import Problem
from pipesched.results.certificate import Certificate
from pipesched.results.crossing_evidence import CrossingStepsBelow
from solver.bounds.analytic.critical_paths import Paths
from solver.bounds.crossing_below.follow import Least, least_below
from solver.bounds.crossing_below.remaining import Remaining, remaining
from solver.bounds.crossing_blocks.blocks import block_ticks
from solver.bounds.crossing_steps.steps import Steps, state_count, steps_of, walked_chains

# The name of its certificates.
KIND = "crossings of steps below a value"
# Labels looked at in all; numbers of the pass backwards, four bytes each.
WORK, MOST_NUMBERS = 200_000_000, 50_000_000
# The first value tried is so much of the gap above what is proved, the last step a quarter of that. Steps become longer
# after a value that took few labels, and shorter after one that took so many times those of the value before: labels of
# one not reached are in vain, but so are those of many values that are reached one after the other.
_STEP, _FEW, _TIMES = 16, 100_000, 40
# Labels of a state, and devices besides the first: with blocks, more labels prove more than more devices.
_WIDTHS, _DEVICES = (64,), 4
_WIDTHS_WITH_BLOCKS, _DEVICES_WITH_BLOCKS = (1024,), 2
# Memory leaves out many states that are counted before they are looked at: up to so many times those that there are.
_OVERSTATED = 4


def crossing_bounds_below(
    problem: Problem,
    stop: Event,
    proved: float,
    known: float,
    widths: Sequence[int] | None = None,
    work: int = WORK,
    numbers: int = MOST_NUMBERS,
) -> Iterator[Certificate]:
    """Above what is `proved`, up to the value of a schedule that is `known`: each above those before, in ticks.

    Nothing where a pass is several tasks.
    """
    if problem.network.options or not problem.network.one_task_each:
        return
    paths, best, until = Paths(problem), ceil(proved), ceil(known)
    widths = widths or (_WIDTHS_WITH_BLOCKS if problem.overlaps else _WIDTHS)
    for chain in walked_chains(problem):
        for devices in device_sets(problem, chain):
            steps = steps_of(problem, paths, chain, devices)
            if steps is None or best >= until or _numbers(problem, chain, devices, steps) > _OVERSTATED * numbers:
                continue
            rest = remaining(steps, block_ticks(problem, chain, devices), numbers, stop)
            if rest is None:
                continue
            work -= rest.states()
            for width in widths:
                for value, least in _raised(steps, rest, width, best, until, work, stop):
                    work -= least.work
                    if least.ticks is not None and least.ticks > best:
                        best, own = least.ticks, CrossingStepsBelow(chain[0], devices, width, value, problem.tick)
                        yield _certificate(problem, chain, best, own)
                if work <= 0 or stop.is_set():
                    return


def device_sets(problem: Problem, chain: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """The first device of a chain, and others in even steps up to the last: first the most of them."""
    first, *others = dict.fromkeys(problem.placement.stage_device[stage] for stage in chain)
    for count in range(min(len(others), _DEVICES_WITH_BLOCKS if problem.overlaps else _DEVICES), 0, -1):
        yield (first, *(others[len(others) * n // count - 1] for n in range(1, count + 1)))


def _numbers(problem: Problem, chain: Sequence[int], devices: Sequence[int], steps: Steps) -> int:
    """About how many numbers the pass backwards has at most."""
    layers = len(steps.ticks) * steps.microbatches
    return state_count(problem, chain, devices) * layers * (steps.in_flight + 2 * len(devices))


def _raised(
    steps: Steps, rest: Remaining, width: int, proved: int, known: int, work: int, stop: Event
) -> Iterator[tuple[int, Least]]:
    """Values and what was proved with them, in steps above what is proved.

    A step is twice as long as that of a value that was reached with few labels, half as long after many more than the
    value before took, or in vain.
    """
    step = max(1, (known - proved) // _STEP)
    least_step, before = max(1, step // 4), _FEW
    while proved < known and work > 0 and not stop.is_set():
        value = min(known, proved + step)
        least = least_below(steps, rest, width, value, work, stop)
        yield value, least
        work -= least.work
        if least.ticks == value:
            proved = value
            many = least.work > _TIMES * before
            step = 2 * step if least.work <= _FEW else max(least_step, step // 2) if many else step
            before = max(_FEW, least.work)
        else:
            if step <= least_step:
                return
            proved, step = max(proved, least.ticks or 0), step // 2


def _certificate(problem: Problem, chain: Sequence[int], least: int, own: CrossingStepsBelow) -> Certificate:
    devices, count = own.devices, len(problem.microbatches_of[chain[0]])
    where = f"device {devices[0]}" if len(devices) == 1 else f"devices {', '.join(map(str, devices))}"
    stages = counted(sum(problem.placement.stage_device[stage] in devices for stage in chain), "stage")
    together = (
        ", or run two at a time as an overlapped block, which ends both; a device starts"
        if problem.overlaps
        else ": a device runs one at a time, and starts"
    )
    text = (
        f"On {where} the forwards and gradients of {stages} of a chain take turns{together} a forward only while its "
        f"memory has room for it; a micro-batch is away for as long as other devices take. Orders that cannot end "
        f"before {amount(problem, own.below)} are not followed to their end; in whichever order "
        f"{'and blocks ' if problem.overlaps else ''}they run, all {count} micro-batches take at least "
        f"{amount(problem, least)}."
    )
    return Certificate(KIND, least, text, devices[0], own)
