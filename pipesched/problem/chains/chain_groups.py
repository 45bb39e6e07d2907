"""Groups of chains connected by arcs: chains whose passes wait for each other's are in one group."""

from __future__ import annotations

from graphlib import TopologicalSorter

from pipesched.problem.problem import Problem
from pipesched.problem.quantities import ChainId


def chain_groups(problem: Problem) -> list[tuple[ChainId, ...]]:
    """Return the indices of all chains in groups, such that arcs connect only chains of one group.

    Within a group the chains are sorted: a chain stands after the chains whose forwards feed its forwards.
    """
    number = problem.placement.chain_index
    group = list(range(len(problem.placement.chains)))
    fed: dict[int, set[int]] = {n: set() for n in group}
    for arc in problem.chain_arcs.arcs:
        one, other = group[number[arc.before]], group[number[arc.after]]
        group = [one if each == other else each for each in group]
        if not arc.backward:
            fed[number[arc.after]].add(number[arc.before])
    order = list(TopologicalSorter(fed).static_order()) if problem.chain_arcs.arcs else sorted(fed)
    return [tuple(n for n in order if group[n] == one) for one in dict.fromkeys(group)]
