"""Bounds by all orders on some devices of a chain: all of its stages there are kept, and nothing is left out.

On more and more devices; where passes may overlap, blocks are tried too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from threading import Event

from pipesched.problem.problem import Problem
from pipesched.results.certificate import Certificate
from solver.bounds.analytic.critical_paths import Paths
from solver.diagram.certificate import certificate_of
from solver.diagram.device_sets import Trial, in_a_row, trials
from solver.diagram.follow import least_end
from solver.diagram.steps import kept_stages, walked_chains
from solver.tuning import FEW_LABELS, MOST_LABELS, WIDTHS


def bounds_of_all_orders(
    problem: Problem, stop: Event, widths: Sequence[int] = WIDTHS[:2], work: int = MOST_LABELS
) -> Iterator[Certificate]:
    """On more and more devices of each chain, while that takes no more than so much work; each above those before.

    Nothing where a pass is several tasks.
    """
    if plain_passes(problem):
        yield from _bounds(problem, stop, trials(problem, [*walked_chains(problem)], widths), work)


def bounds_in_a_row(problem: Problem, stop: Event, work: int = FEW_LABELS) -> Iterator[Certificate]:
    """On the first three devices, the first four and so on, of a chain with too many states to keep all devices.

    Forwards on their way down and gradients on their way up wait for each other between neighbours. Where that decides,
    three devices in a row prove more than three that are far from each other. Nothing where a chain comes to a device
    again, or a pass is several tasks.
    """
    if plain_passes(problem):
        for chain in walked_chains(problem):
            yield from _bounds(problem, stop, in_a_row(problem, chain, WIDTHS[1]), work)


def plain_passes(problem: Problem) -> bool:
    """Whether each pass is one task, of which nothing is to be chosen."""
    return problem.network.one_task_each and not problem.network.options


def _bounds(problem: Problem, stop: Event, tried: Iterable[Trial], work: int) -> Iterator[Certificate]:
    best, paths, exact = 0, Paths(problem), set[tuple[int, ...]]()
    for trial in tried:
        if trial.stages in exact:
            continue
        kept = kept_stages(problem, paths, trial.chain, trial.stages)
        if kept is None:
            continue
        found = least_end(kept.steps, trial.width, work, stop)
        work -= found.work
        if not found.merged:
            exact.add(trial.stages)
        if found.ticks is not None and found.ticks > best:
            best = found.ticks
            yield certificate_of(problem, kept, best, trial.width)
        if work <= 0 or stop.is_set():
            return
