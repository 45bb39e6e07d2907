"""Argument: as for crossings of steps below a value, with weight passes that run without a break.

In front of each step of a device some of its weight passes run, of gradients that it has run before. A forward leaves
no more open than memory has room for; else any number may be open, and for any time. A backward in one go is one whose
weight pass comes right behind its gradient. A weight pass counts as long as any backward takes at least behind its
gradient. So every schedule is such an order, and the least end of them all is no later than any schedule's.

Two orders that have come equally far are compared: if the one can, after it has run all weight passes that are open in
it and not in the other, do on every device all that the other can, no later, then the other need not be tried.
"""

from __future__ import annotations

from pipesched.checking.crossing_blocks.argument import block_ticks
from pipesched.checking.crossing_steps.argument import chain_of, way_on
from pipesched.checking.finding import NotCoveredError, RefusedEvidenceError
from pipesched.problem.problem import Objective, Problem
from pipesched.results.crossing_evidence import CrossingWhole


def crossings_of_whole(problem: Problem, evidence: CrossingWhole) -> int:
    """The least end of the orders that are tried, or the value that the others do not end before."""
    from pipesched.checking.crossing_whole.orders import least_end_of_whole

    chain = chain_of(problem, evidence.stage, evidence.devices)
    if not problem.network.one_task_each or problem.network.options:
        raise NotCoveredError("a pass is several tasks")
    if any(stage.overlapped is not None for stage in problem.stages):
        raise NotCoveredError("in a block a forward and a backward need not pass each other")
    if evidence.below < 0:
        raise RefusedEvidenceError("orders that end below nothing")
    way = way_on(problem, chain, evidence.devices, 1)
    kept = [stage for stage in chain if problem.placement.stage_device[stage] in evidence.devices]
    none = block_ticks(problem, kept)
    return least_end_of_whole(way, none, problem.objective is Objective.MAKESPAN, evidence.below)
