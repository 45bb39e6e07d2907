"""Bounds by all orders on some devices of a chain: all of its stages there are kept, and nothing is left out.

On more and more devices; where passes may overlap, blocks are tried too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from threading import Event

from pipesched.problem.problem import Problem
from pipesched.results.certificate import Certificate
from solver.bounds.analytic.critical_paths import Paths
from solver.diagram.certificate import certificate_of
from solver.diagram.device_sets import trials
from solver.diagram.follow import least_end
from solver.diagram.steps import kept_stages, walked_chains
from solver.tuning import MOST_LABELS, WIDTHS


def bounds_of_all_orders(
    problem: Problem, stop: Event, widths: Sequence[int] = WIDTHS[:2], work: int = MOST_LABELS
) -> Iterator[Certificate]:
    """On more and more devices of each chain, while that takes no more than so much work; each above those before.

    Nothing where a pass is several tasks.
    """
    if not plain_passes(problem):
        return
    best, paths, exact = 0, Paths(problem), set[tuple[int, ...]]()
    for trial in trials(problem, [*walked_chains(problem)], widths):
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


def plain_passes(problem: Problem) -> bool:
    """Whether each pass is one task, of which nothing is to be chosen."""
    return problem.network.one_task_each and not problem.network.options
