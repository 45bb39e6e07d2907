"""The bound by crossings of steps of more stages: besides those that some stages were proved much with, one by one.

A pass backwards over many stages has millions of states; one over few of them leaves out nearly as many labels. So
the stages that come behind those of the device, and others that micro-batches come to while memory of the device holds
them, are kept besides, with many labels of a state.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import ceil
from threading import Event
from typing import NamedTuple

from pipesched.problem.formatting import amount
from pipesched.problem.problem import Problem
from pipesched.results.certificate import Certificate
from pipesched.results.crossing_evidence import GuidedStages
from solver.bounds.analytic.critical_paths import Paths
from solver.bounds.crossing_guided.follow import least_guided
from solver.bounds.crossing_guided.guide import Fewer, fewer_of, guide_of
from solver.bounds.crossing_stages.stages import devices_of, steps_of_stages
from solver.bounds.crossing_steps.steps import walked_chains

# The name of its certificates.
KIND = "crossings of steps of more stages"
# Labels looked at in all; numbers of the pass backwards, four bytes each; labels of a state.
WORK, MOST_NUMBERS, WIDTH = 60_000_000, 50_000_000, 512
# The first value is a third of the gap above what is proved; a step that is no longer than a sixteenth of that is the
# last. After a value that is not reached a step is a quarter.
_FIRST, _LAST, _SHORTER = 3, 16, 4


class Reached(NamedTuple):
    """What was proved, the value below which orders were followed, and how many labels were looked at."""

    ticks: int
    below: int
    work: int


class _Kept(NamedTuple):
    """What is kept of a chain, with the pass backwards that guides all that is kept besides."""

    problem: Problem
    chain: tuple[int, ...]
    guide: Fewer
    width: int
    stop: Event


def bounds_of_more_stages(
    problem: Problem,
    stages: tuple[int, ...],
    between: tuple[float, float],
    stop: Event,
    width: int = WIDTH,
    work: int = WORK,
    numbers: int = MOST_NUMBERS,
) -> Iterator[Certificate]:
    """Above what is proved, in ticks, each above those before; the second of `between` is the value of a schedule.

    First with the stage behind those of the device besides, then with each other one besides that, and with the best of
    these again with each other one. Nothing where blocks overlap passes, or a pass is several tasks.
    """
    if problem.overlaps or problem.network.options or not problem.network.one_task_each:
        return
    best, until = ceil(between[0]), ceil(between[1])
    for chain in walked_chains(problem):
        guide = fewer_of(problem, chain, stages, numbers, stop) if set(stages) <= set(chain) else None
        if guide is None:
            continue
        kept, step = _Kept(problem, chain, guide, width, stop), (until - best) // _FIRST
        first, behind = stages, _behind(problem, chain, stages)
        candidates = _others(chain, first) if behind is None else [behind]
        while candidates:
            more = None if behind is None else _with(chain, first, behind)
            for stage in candidates:
                trial = _with(chain, first, stage)
                for found in _raised(kept, trial, best, until, step, work):
                    work -= found.work
                    if found.ticks > best:
                        best, more = found.ticks, trial
                        yield _certificate(problem, best, GuidedStages(trial, stages, width, found.below, problem.tick))
                if work <= 0 or stop.is_set():
                    return
            if more is None:
                break
            first, behind, step = more, None, max(1, step // _SHORTER)
            candidates = _others(chain, first)


def _with(chain: Sequence[int], stages: Sequence[int], more: int) -> tuple[int, ...]:
    return tuple(stage for stage in chain if stage in (*stages, more))


def _behind(problem: Problem, chain: Sequence[int], stages: Sequence[int]) -> int | None:
    """The stage behind those of a device with several of the stages: it says what few of them lose in the long run."""
    where = problem.placement.stage_device
    for last, after in zip(reversed(chain[:-1]), reversed(chain), strict=False):
        several = sum(where[stage] == where[last] for stage in stages) > 1
        if last in stages and after not in stages and several:
            return after
    return None


def _others(chain: Sequence[int], stages: Sequence[int]) -> list[int]:
    """Those behind the first one, the last of them first: while a micro-batch is there the device holds it."""
    return [stage for stage in reversed(chain[chain.index(stages[0]) :]) if stage not in stages]


def _raised(kept: _Kept, stages: tuple[int, ...], proved: int, known: int, step: int, work: int) -> Iterator[Reached]:
    """By values that become larger as long as they are reached, and then by shorter steps."""
    own = steps_of_stages(kept.problem, Paths(kept.problem), kept.chain, stages)
    if own is None:
        return
    guide, last = guide_of(kept.problem, own, stages, kept.guide), max(1, step // _LAST)
    proved = max(proved, own.beside)
    while proved < known and step >= last and work > 0 and not kept.stop.is_set():
        value = min(known, proved + step)
        least = least_guided(own.steps, guide, kept.width, value - own.beside, work, kept.stop)
        ticks = 0 if least.ticks is None else min(value, least.ticks + own.beside)
        yield Reached(ticks, value, least.work)
        if ticks <= proved and step < (known - proved) // _FIRST:
            return  # Another stage is tried instead.
        if ticks < value:
            step //= _SHORTER
        work, proved = work - least.work, max(proved, ticks)


def _certificate(problem: Problem, least: int, own: GuidedStages) -> Certificate:
    devices, count = devices_of(problem, own.stages), len(problem.microbatches_of[own.stages[0]])
    text = (
        f"The forwards and gradients of stages {', '.join(map(str, own.stages))} take turns on "
        f"{'device' if len(devices) == 1 else 'devices'} {', '.join(map(str, devices))}: a device starts one of these "
        f"forwards only while its memory has room for it besides others of these; a micro-batch is away for as long as "
        f"all other stages take. Orders of which those of stages {', '.join(map(str, own.guide))} alone show that they "
        f"cannot end before {amount(problem, own.below)} are not followed to their end; in whichever order they run, "
        f"all {count} micro-batches take at least {amount(problem, least)}."
    )
    return Certificate(KIND, least, text, devices[0], own)
