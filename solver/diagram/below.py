"""Bounds below a value: only orders that may end below it are followed, as far as the guide says.

A pass backwards with one label a state says how long the rest takes at least: over all kept stages, or over some that
guide. A label from which nothing ends before the value is left out; so fewer labels of a state have to be merged than
where all are followed. What is left ends at the least of their ends, and what was left out at the value or later: the
lesser of the two is proved. Values are tried between what is proved and the value of a schedule.

Where devices have several stages, the steps of two devices come in too many orders. So the stages of one device are
kept with one or two on their way. Memory of the device decides how many micro-batches are away, the other stages
whether they come back in time. Those guide then where still more stages are kept, with many labels of a state.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import ceil
from threading import Event
from typing import NamedTuple

from pipesched.problem.problem import Problem
from pipesched.results.certificate import Certificate
from solver.bounds.analytic.critical_paths import Paths
from solver.diagram.all_orders import plain_passes
from solver.diagram.certificate import certificate_of
from solver.diagram.completion import Rests, completion, numbers_of
from solver.diagram.device_sets import in_even_steps
from solver.diagram.follow import least_end
from solver.diagram.guide import guide_of
from solver.diagram.layers import Least
from solver.diagram.steps import Kept, kept_stages, stages_on, walked_chains
from solver.diagram.values import raised
from solver.tuning import (
    FEW,
    MOST_LABELS,
    MOST_NUMBERS,
    TOGETHER,
    VALUE_SHORTEST,
    VALUE_STEP,
    WIDTH,
)


class Guiding(NamedTuple):
    """Kept stages, and what remains after each of their states."""

    kept: Kept
    rest: list[Rests]


class _Raising:
    """What is proved so far, up to the value of a schedule, in ticks; labels that may still be looked at."""

    def __init__(self, problem: Problem, stop: Event, proved: float, known: float, work: int) -> None:
        self.problem, self.stop, self.paths = problem, stop, Paths(problem)
        self.best, self.known, self.work = ceil(proved), ceil(known), work

    @property
    def over(self) -> bool:
        return self.work <= 0 or self.stop.is_set() or self.best >= self.known

    def guiding(self, chain: Sequence[int], stages: Sequence[int], numbers: int) -> Guiding | None:
        """A pass backwards over some stages; None where it has more than so many numbers, or after a stop."""
        kept = kept_stages(self.problem, self.paths, chain, stages)
        if kept is None or numbers_of(kept) > FEW * numbers:
            return None
        rest = completion(kept.steps, numbers, self.stop)
        if rest is None:
            return None
        self.work -= sum(len(layer.keys) for layer in rest)
        return Guiding(kept, rest)

    def certificates(self, kept: Kept, by: Guiding, width: int, steps: tuple[int, int]) -> Iterator[Certificate]:
        """Each above those before. `steps` from value to value: the first, and the shortest."""
        guide = guide_of(self.problem, kept, by.kept, by.rest)

        def least_below(value: int, work: int) -> Least:
            least = least_end(kept.steps, width, work, self.stop, guide, value - kept.beside)
            return least._replace(ticks=None if least.ticks is None else least.ticks + kept.beside)

        between = (max(self.best, kept.beside), self.known)
        for found in raised(least_below, between, steps, self.work, self.stop):
            self.work -= found.work
            if found.ticks > self.best:
                self.best = found.ticks
                yield certificate_of(self.problem, kept, self.best, width, found.below, by.kept.stages)

    def first_step(self, share: int) -> int:
        return max(1, (self.known - self.best) // share)


def bounds_of_devices(
    problem: Problem,
    stop: Event,
    proved: float,
    known: float,
    width: int = WIDTH,
    work: int = MOST_LABELS,
    numbers: int = MOST_NUMBERS,
) -> Iterator[Certificate]:
    """Above what is `proved`, up to the value of a schedule that is `known`: each above those before, in ticks.

    On the first device of a chain and others in even steps. Nothing where a pass is several tasks.
    """
    if not plain_passes(problem):
        return
    raising = _Raising(problem, stop, proved, known, work)
    for chain in walked_chains(problem):
        for stages in in_even_steps(problem, chain, TOGETHER // 2 if problem.overlaps else TOGETHER):
            by = None if raising.over else raising.guiding(chain, stages, numbers)
            if by is None:
                continue
            step = raising.first_step(VALUE_STEP)
            yield from raising.certificates(by.kept, by, width, (step, max(1, step // VALUE_SHORTEST)))
            if raising.over:
                return


def bounds_of_stages(
    problem: Problem,
    stop: Event,
    proved: float,
    known: float,
    device: int,
    width: int = WIDTH,
    work: int = MOST_LABELS,
    numbers: int = MOST_NUMBERS,
) -> Iterator[Certificate]:
    """As `bounds_of_devices`, with all stages of one device, and those that prove most with them, one after the other.

    While a micro-batch is at later stages, the device holds its activation; more of the last ones prove something.
    """
    if not plain_passes(problem):
        return
    raising = _Raising(problem, stop, proved, known, work)
    for chain in walked_chains(problem):
        kept = stages_on(problem, chain, (device,))
        for _ in range(TOGETHER // 2 if kept else 0):
            before = kept
            for stages in _with_one_more(chain, before):
                by = raising.guiding(chain, stages, numbers)
                step = raising.first_step(VALUE_STEP)
                own = raising.certificates(by.kept, by, width, (step, max(1, step // VALUE_SHORTEST))) if by else ()
                for certificate in own:
                    kept = stages
                    yield certificate
                if raising.over:
                    return
            if kept == before:
                break


def bounds_of_more_stages(
    problem: Problem,
    stop: Event,
    proved: float,
    known: float,
    stages: tuple[int, ...],
    width: int = WIDTH,
    work: int = MOST_LABELS,
    numbers: int = MOST_NUMBERS,
) -> Iterator[Certificate]:
    """The same, where some stages guide others that are kept besides.

    First with the stage behind those of the device besides, then with each other one besides that, and with the best of
    these again with each other one.
    """
    if not plain_passes(problem):
        return
    raising = _Raising(problem, stop, proved, known, work)
    for chain in walked_chains(problem):
        by = raising.guiding(chain, stages, numbers) if set(stages) <= set(chain) else None
        if by is None:
            continue
        step, behind = raising.first_step(VALUE_SHORTEST), _behind(problem, chain, stages)
        first, shortest = stages, max(1, step // VALUE_STEP)
        candidates = [*_with_one_more(chain, first)] if behind is None else [_with(chain, first, behind)]
        while candidates:
            best = None if behind is None else candidates[0]
            for trial in candidates:
                kept = kept_stages(problem, raising.paths, chain, trial)
                for certificate in raising.certificates(kept, by, width, (step, shortest)) if kept else ():
                    best = trial
                    yield certificate
                if raising.over:
                    return
            if best is None:
                break
            step = max(1, step // VALUE_SHORTEST)
            first, behind, candidates, shortest = best, None, [*_with_one_more(chain, best)], step


def _with(chain: Sequence[int], stages: Sequence[int], more: int) -> tuple[int, ...]:
    return tuple(stage for stage in chain if stage in (*stages, more))


def _with_one_more(chain: Sequence[int], stages: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """With each stage behind the first one, the last of them first."""
    for stage in reversed(chain[chain.index(stages[0]) :]):
        if stage not in stages:
            yield _with(chain, stages, stage)


def _behind(problem: Problem, chain: Sequence[int], stages: Sequence[int]) -> int | None:
    """The stage behind those of a device with several of the stages: it says what few of them lose in the long run."""
    where = problem.placement.stage_device
    for last, after in zip(reversed(chain[:-1]), reversed(chain), strict=False):
        several = sum(where[stage] == where[last] for stage in stages) > 1
        if last in stages and after not in stages and several:
            return after
    return None
