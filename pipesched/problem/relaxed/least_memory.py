"""Relaxation in which offload and recomputation take no time, so that each activation uses its least memory."""

from __future__ import annotations

from pipesched.problem.problem import Problem

ARGUMENT = (
    "Left out of a schedule, copies and recomputations leave one of the poorer problem that holds no more: of each "
    "activation that part alone stays from the forward to the backward which stays in every mode; the rest is taken "
    "when the backward begins. No backward that frees something frees it sooner. A device that holds activations of "
    "others holds less without them."
)


def with_least_activations(problem: Problem) -> Problem:
    """Return the problem without saving passes, each activation with the least memory of its modes.

    The problem itself if no activation may be offloaded or recomputed.
    """
    kept = problem.keeping_activations()
    if kept is problem:
        return problem
    least = [min(keeps for keeps, _ in stage.memory_until_backward.values()) for stage in problem.stages]
    freed = [
        stage.freed - (stage.activation - activation) for stage, activation in zip(problem.stages, least, strict=True)
    ]
    return kept.with_stages(activation=least, freed=freed)
