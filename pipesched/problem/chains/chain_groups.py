"""Chains that arcs tie to each other: what runs for a micro-batch of one of them needs the others."""

from __future__ import annotations

from graphlib import TopologicalSorter

from pipesched.problem.problem import Problem


def chain_groups(problem: Problem) -> list[tuple[int, ...]]:
    """The numbers of all chains in groups that have no arcs to each other; in a group those that feed come first."""
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
