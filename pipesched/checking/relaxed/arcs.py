"""Argument: without waiting for each other, chains end no later, and free their memory no later."""

from __future__ import annotations

from dataclasses import replace

from pipesched.problem.features.chain_arcs import NO_ARCS
from pipesched.problem.kv_cache import NO_KV_CACHE
from pipesched.problem.problem import Problem


def without_arcs_between_chains(problem: Problem) -> Problem:
    """Return the problem without arcs between chains; the problem itself if it has none.

    A forward takes the same memory, all of which its own backward now frees; the other chain's backward did so no
    sooner.
    """
    if not problem.chain_arcs.arcs:
        return problem
    stages = []
    for stage in problem.stages:
        taken = stage.activation + stage.kv_cache.taken
        until_weight = stage.activation - stage.freed
        stages.append(replace(stage, activation=taken, freed=taken - until_weight, kv_cache=NO_KV_CACHE))
    return replace(problem, stages=tuple(stages), chain_arcs=NO_ARCS)
