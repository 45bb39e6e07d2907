"""Argument: of the orders of crossings of steps, or with blocks, those that end at a value or later need not be tried.

How long the rest of an order takes at least is found from the end, for each way to have come so far, whatever was
before. An order of which that says that it ends at the value or later is left out. So every order ends no sooner than
the first of those that are left, or no sooner than the value.
"""

from __future__ import annotations

from pipesched.checking.crossing_blocks.argument import block_ticks
from pipesched.checking.crossing_steps.argument import chain_of, way_on
from pipesched.checking.finding import NotCoveredError, RefusedEvidenceError
from pipesched.problem.problem import Objective, Problem
from pipesched.results.crossing_evidence import CrossingStepsBelow


def crossings_below(problem: Problem, evidence: CrossingStepsBelow) -> int:
    """The least end of the orders that are tried, or the value that the others do not end before."""
    from pipesched.checking.crossing_below.orders import least_end_below

    chain = chain_of(problem, evidence.stage, evidence.devices)
    if not problem.network.one_task_each or problem.network.options:
        raise NotCoveredError("a pass is several tasks")
    if evidence.below < 0:
        raise RefusedEvidenceError("orders that end below nothing")
    way = way_on(problem, chain, evidence.devices, evidence.width)
    kept = [stage for stage in chain if problem.placement.stage_device[stage] in evidence.devices]
    makespan = problem.objective is Objective.MAKESPAN
    return least_end_below(way, block_ticks(problem, kept), evidence.width, makespan, evidence.below)
