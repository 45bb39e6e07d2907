"""Argument: as for crossings of steps below a value, of some stages of a chain; each other one is time that passes.

If each other stage were on a device of its own, whose memory has no limit, every schedule would stay one, and take no
longer. A pass in a block with one of another stage counts as that pass alone, in the least time that it can take.
Before the first of these stages the first micro-batch takes its way there from the chain's first stage, whose device
has begun by then; after the last gradient there the last micro-batch takes its way back, and its backward is finished.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pipesched.checking.crossing_blocks.argument import block_ticks
from pipesched.checking.crossing_steps.argument import Way, chain_of, way_along
from pipesched.checking.finding import NotCoveredError, RefusedEvidenceError
from pipesched.checking.least_times import least_times
from pipesched.problem.problem import Problem
from pipesched.results.crossing_evidence import CrossingStages


class Kept(NamedTuple):
    """The way of micro-batches along some stages, and the time before its first forward and from its last gradient on.

    The latter from the start of that gradient.
    """

    way: Way
    beside: int


def crossings_of_stages(problem: Problem, evidence: CrossingStages) -> int:
    """The least end of the orders that are tried, or the value that the others do not end before."""
    from pipesched.checking.crossing_below.orders import least_end_below

    kept = along(problem, evidence.stages, evidence.width)
    if evidence.below < kept.beside:
        raise RefusedEvidenceError("orders that end below nothing")
    together, below = block_ticks(problem, list(evidence.stages)), evidence.below - kept.beside
    return kept.beside + least_end_below(kept.way, together, evidence.width, False, below)


def along(problem: Problem, stages: tuple[int, ...], width: int) -> Kept:
    """Of some stages of a chain, in its order."""
    where, times = problem.placement.stage_device, least_times(problem)
    chain = next((chain for chain in problem.placement.chains if stages and stages[0] in chain), ())
    if not chain or stages != tuple(stage for stage in chain if stage in stages):
        raise RefusedEvidenceError(f"stages {list(stages)} are not those of a chain, in its order")
    chain_of(problem, chain[0], (where[chain[0]],))
    if not problem.network.one_task_each or problem.network.options:
        raise NotCoveredError("a pass is several tasks")
    way = way_along(problem, stages, tuple(dict.fromkeys(where[stage] for stage in stages)), width)
    first, last = times[chain[0]], times[stages[0]]
    return Kept(_until_the_last(way), first.turns + first.backward - last.turns + last.begins)


def _until_the_last(way: Way) -> Way:
    """With a device before all others that has nothing to run.

    Nothing starts before the step before it did, on any device; so its time is the start of the last step.
    """
    none = np.zeros(1, np.int64)
    return way._replace(
        device=way.device + 1,
        soonest=np.hstack((np.full((len(way.soonest), 1), -1, np.int64), way.soonest)),
        room=np.append(none - 1, way.room),
        open_=np.append(none, way.open_),
        weight=np.append(none, way.weight),
    )
