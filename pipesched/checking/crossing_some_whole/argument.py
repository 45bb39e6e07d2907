"""Argument: as for crossings of steps, but before the first steps some devices run each weight pass without a break.

The first steps of a schedule are an order with whole weight passes on those devices, for which what is said of whole
weight passes holds; others have had time for all their work but for what memory lets be open. Of orders that have come
equally far near ones count as one that is no later and has no more open. From then on all devices may break off weight
passes: each has its work so far, and what is open, before it would have run all.
"""

from __future__ import annotations

from pipesched.checking.crossing_steps.argument import chain_of, way_on
from pipesched.checking.finding import NotCoveredError, RefusedEvidenceError
from pipesched.problem.problem import Objective, Problem
from pipesched.results.crossing_evidence import CrossingSomeWhole


def crossings_with_some_whole(problem: Problem, evidence: CrossingSomeWhole) -> int:
    """The least end over all orders; where many have come equally far, near ones count as one that is no later."""
    from pipesched.checking.crossing_some_whole.orders import begun_with_whole
    from pipesched.checking.crossing_steps.orders import least_end

    chain = chain_of(problem, evidence.stage, evidence.devices)
    if not problem.network.one_task_each or problem.network.options:
        raise NotCoveredError("a pass is several tasks")
    if any(stage.overlapped is not None for stage in problem.stages):
        raise NotCoveredError("in a block a forward and a backward need not pass each other")
    if not set(evidence.whole) <= set(evidence.devices):
        raise RefusedEvidenceError(f"devices {list(evidence.whole)} are not among those that are looked at")
    way = way_on(problem, chain, evidence.devices, evidence.width)
    if not 0 <= evidence.steps < way.microbatches * len(way.ticks):
        raise RefusedEvidenceError(f"{evidence.steps} steps before the last one")
    whole = [evidence.devices.index(one) for one in evidence.whole]
    begun = begun_with_whole(way, whole, evidence.steps, evidence.width)
    return least_end(way, evidence.width, problem.objective is Objective.MAKESPAN, (begun, evidence.steps))
