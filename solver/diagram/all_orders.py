"""Bounds by all orders on some devices of a chain: all of the chain's stages there are modelled, others are delays.

The diagram follows every order, without a threshold; labels are merged only beyond `width` in a state. The sets of
devices grow; where passes may overlap, blocks are possible steps too.
"""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from threading import Event

from pipesched.problem.problem import Problem
from pipesched.problem.quantities import Ticks
from pipesched.results.certificate import Certificate
from solver.bounds.analytic.critical_paths import Paths
from solver.diagram.certificate import certificate_of
from solver.diagram.device_sets import Trial, trials
from solver.diagram.modelled_stages import owner_of, walked_chains
from solver.diagram.modelled_steps import modelled_steps
from solver.diagram.models.chain_steps import least_end
from solver.diagram.params import DIAGRAMS
from solver.diagram.projected_completion import projected_completions


def bounds_of_all_orders(
    problem: Problem,
    stop: Event,
    width: int = DIAGRAMS.width,
    work: int = DIAGRAMS.most_labels,
    done: MutableMapping[Trial, Ticks] | None = None,
) -> Iterator[Certificate]:
    """Yield certificates of increasing value on growing sets of devices of each chain, within `work` labels in all.

    The first may be below a bound that is proved already. At most `width` labels are kept per state; setting `stop`
    ends it. `done` has the bound, in ticks, of each set already tried; sets tried here are added to it, so that a later
    call continues where this one ends. Nothing is yielded unless the problem is plain.
    """
    if problem.view is None:
        return
    best, paths, done = 0, Paths(problem), {} if done is None else done
    for trial in trials(problem, [*walked_chains(problem)]):
        kept = modelled_steps(problem, paths, trial.stages, owner_of(problem, trial.chain, trial.stages))
        if kept is None:
            continue
        found = done.get(trial)
        if found is None:
            if work <= 0 or stop.is_set():
                return
            least = least_end(kept.steps, width, work, stop, projected_completions(problem, kept, ()))
            found, work = least.ticks, work - least.work
        if found is not None:
            done[trial] = found
            if found > best:
                best = found
                yield certificate_of(problem, kept, best, width)
