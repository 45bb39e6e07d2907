"""A problem in which every activation is held as little as any way of saving memory allows, and for no longer."""

from __future__ import annotations

from pipesched.problem.problem import Problem


def with_least_memory(problem: Problem) -> Problem:
    """The same problem with copies and recomputations that take no time.

    Of each activation that part alone stays from the forward to the backward which stays under every way; the rest is
    taken when the backward begins. Every schedule becomes one of that problem when its copies and recomputations are
    left out, and holds no more there. No backward that frees something frees it sooner.
    """
    kept = problem.keeping_activations()
    least = [min(keeps for keeps, _ in stage.held_until_backward.values()) for stage in problem.stages]
    freed = [stage.freed - (stage.activation - held) for stage, held in zip(problem.stages, least, strict=True)]
    return kept.with_stages(activation=least, freed=freed)
