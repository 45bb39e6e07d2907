"""Relaxation that drops the arcs between chains: pieces and modules no longer wait for each other."""

from __future__ import annotations

from dataclasses import replace

from pipesched.problem.features.chain_arcs import NO_ARCS
from pipesched.problem.kv_cache import NO_KV_CACHE
from pipesched.problem.network.task_network import Arc, TaskNetwork
from pipesched.problem.passes import OF_PARAMETERS
from pipesched.problem.problem import Problem

ARGUMENT = (
    "The network loses the arcs between chains, and what a forward takes for others its own backward gives back, which "
    "never is later than in the problem."
)


def drop_arcs_between_chains(problem: Problem) -> Problem:
    """Return the problem without arcs between chains; the problem itself if it has none.

    Memory kept for later pieces becomes part of each piece's own activation.
    """
    if not problem.chain_arcs.arcs:
        return problem
    stages = tuple(
        replace(s, activation=s.activation + kept, freed=s.freed + kept, kv_cache=NO_KV_CACHE)
        for s in problem.stages
        for kept in (s.kv_cache.taken,)
    )
    return replace(problem, stages=stages, chain_arcs=NO_ARCS)


def network_without_arcs(problem: Problem) -> TaskNetwork:
    """Return the problem's task network without arcs between chains.

    Unlike `drop_arcs_between_chains` it changes no memory.
    """

    def between_chains(arc: Arc) -> bool:
        return arc.share is not None and arc.after.kind not in OF_PARAMETERS

    return problem.network.drop(arcs=between_chains)
