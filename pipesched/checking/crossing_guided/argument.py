"""Argument: as for crossings of steps of some stages, with other orders left out: those that fewer stages say it of.

In an order of the steps of some stages there is an order of the steps of any fewer of them. What that one takes at
least from where it has come, found from the end, the whole order takes too. A micro-batch has gone on since its last
step of the fewer stages: it comes to the next of them as if that step had ended when it must have, had the micro-batch
come to where it is now without a wait. If that ends at the value or later, so does the whole order.
"""

from __future__ import annotations

from pipesched.checking.crossing_stages.argument import along
from pipesched.checking.finding import NotCoveredError, RefusedEvidenceError
from pipesched.problem.problem import Problem
from pipesched.results.crossing_evidence import GuidedStages


def crossings_of_more_stages(problem: Problem, evidence: GuidedStages) -> int:
    """The least end of the orders that are tried, or the value that the others do not end before."""
    from pipesched.checking.crossing_guided.orders import least_end_guided
    from pipesched.checking.crossing_guided.sight import sight_of

    if any(stage.overlapped is not None for stage in problem.stages):
        raise NotCoveredError("in a block a forward and a backward need not pass each other")
    kept, guide = along(problem, evidence.stages, evidence.width), along(problem, evidence.guide, 1)
    if not set(evidence.guide) <= set(evidence.stages):
        raise RefusedEvidenceError(f"stages {list(evidence.guide)} are not among {list(evidence.stages)}")
    if evidence.below < kept.beside:
        raise RefusedEvidenceError("orders that end below nothing")
    sight = sight_of(problem, kept, guide, evidence.stages, evidence.guide)
    return kept.beside + least_end_guided(kept.way, sight, evidence.width, evidence.below - kept.beside)
