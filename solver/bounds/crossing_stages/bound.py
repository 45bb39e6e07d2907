"""The bound by crossings of steps of some stages below a value: those of one device, and one or two on their way.

Where devices have several stages, the steps of two devices come in too many orders. If a stage that is left out is
thought of as on a device of its own, whose memory has no limit, every schedule stays one; so the stages of one device
may be kept together with any other stage of a chain. Memory of the device decides how many micro-batches are away, the
other stages whether they come back in time. What a micro-batch takes before the first of these stages and after the
last gradient there is added: so the many that are on their way to the device need not be told apart.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import ceil, comb
from threading import Event
from typing import NamedTuple

from pipesched.problem.formatting import amount
from pipesched.problem.problem import Problem
from pipesched.results.certificate import Certificate
from pipesched.results.crossing_evidence import CrossingStages
from solver.bounds.analytic.critical_paths import Paths
from solver.bounds.crossing_below.follow import least_below
from solver.bounds.crossing_below.remaining import remaining
from solver.bounds.crossing_blocks.blocks import block_ticks
from solver.bounds.crossing_stages.stages import devices_of, steps_of_stages
from solver.bounds.crossing_steps.steps import in_flight, walked_chains

# The name of its certificates.
KIND = "crossings of steps of some stages"
# Labels looked at in all; numbers of a pass backwards, four bytes each; labels of a state; stages besides those of the
# device.
WORK, MOST_NUMBERS, WIDTH, BESIDES = 10_000_000, 50_000_000, 64, 2
# The first value is so much of the gap above what is proved; a step that is shorter than a quarter of that is the last.
# After few labels a step is twice as long, and after one that is in vain a quarter.
_STEP, _SHORTEST, _FEW = 16, 4, 20_000
# Memory leaves out many states that are counted before they are looked at: up to so many times those that there are.
_OVERSTATED = 8


class Reached(NamedTuple):
    """What was proved, the value below which orders were followed, and how many states and labels were looked at."""

    ticks: int
    below: int
    work: int


def crossing_bounds_of_stages(
    problem: Problem,
    stop: Event,
    proved: float,
    known: float,
    device: int,
    width: int = WIDTH,
    work: int = WORK,
    numbers: int = MOST_NUMBERS,
) -> Iterator[Certificate]:
    """Above what is `proved`, up to the value of a schedule that is `known`, in ticks: each above those before.

    With all stages of a device, and those that prove most with them, one after the other. Nothing where a pass is
    several tasks.
    """
    if problem.network.options or not problem.network.one_task_each:
        return
    best, where = ceil(proved), problem.placement.stage_device
    for chain in walked_chains(problem):
        kept = tuple(stage for stage in chain if where[stage] == device)
        for _ in range(BESIDES if kept else 0):
            before = kept
            # While a micro-batch is at later ones, the device holds its activation; more of the last ones prove
            # something.
            for stage in reversed(chain[chain.index(kept[0]) :]):
                stages = tuple(one for one in chain if one in (*before, stage))
                if stages == before or _numbers(problem, stages) > _OVERSTATED * numbers:
                    continue
                for found in _raised(problem, chain, stages, (best, ceil(known)), width, work, numbers, stop):
                    work -= found.work
                    if found.ticks > best:
                        best, kept = found.ticks, stages
                        yield _certificate(problem, best, CrossingStages(stages, width, found.below, problem.tick))
                if work <= 0 or stop.is_set():
                    return
            if kept == before:
                break


def _numbers(problem: Problem, stages: Sequence[int]) -> int:
    """About how many numbers the pass backwards has at most: micro-batches do their steps in turn."""
    flying, count, devices = in_flight(problem, stages), 2 * len(stages), 1 + len(devices_of(problem, stages))
    states = comb(count + flying, count) // count
    return states * count * len(problem.microbatches_of[stages[0]]) * (flying + 2 * devices)


def _raised(
    problem: Problem,
    chain: Sequence[int],
    stages: tuple[int, ...],
    between: tuple[int, int],
    width: int,
    work: int,
    numbers: int,
    stop: Event,
) -> Iterator[Reached]:
    """By values that become larger as long as they are reached, and then by shorter steps."""
    kept = steps_of_stages(problem, Paths(problem), chain, stages)
    if kept is None:
        return
    rest = remaining(kept.steps, block_ticks(problem, stages, devices_of(problem, stages)), numbers, stop)
    if rest is None:
        return
    proved, known = max(between[0], kept.beside), between[1]
    seen, step = rest.states(), max(1, (known - proved) // _STEP)
    shortest = max(1, step // _SHORTEST)
    while proved < known and step >= shortest and work > 0 and not stop.is_set():
        value = min(known, proved + step)
        least = least_below(kept.steps, rest, width, value - kept.beside, work, stop)
        ticks = 0 if least.ticks is None else least.ticks + kept.beside
        yield Reached(min(ticks, value), value, seen + least.work)
        if ticks < value:
            step //= 2 if ticks > proved else 4
        elif least.work < _FEW:
            step *= 2
        work, seen, proved = work - seen - least.work, 0, max(proved, min(ticks, value))


def _certificate(problem: Problem, least: int, own: CrossingStages) -> Certificate:
    devices = devices_of(problem, own.stages)
    text = (
        f"The forwards and gradients of stages {', '.join(map(str, own.stages))} take turns on "
        f"{'device' if len(devices) == 1 else 'devices'} {', '.join(map(str, devices))}"
        f"{', or run two at a time as an overlapped block' if problem.overlaps else ''}: a device starts one of these "
        f"forwards only while its memory has room for it besides others of these; a micro-batch is away for as long as "
        f"all other stages take. Orders that cannot end before {amount(problem, own.below)} are not followed to their "
        f"end; in whichever order they run, all {len(problem.microbatches_of[own.stages[0]])} micro-batches take at "
        f"least {amount(problem, least)}."
    )
    return Certificate(KIND, least, text, devices[0], own)
