"""Argument: chains that wait for nothing of each other are ended no later, and give back no later what they took."""

from __future__ import annotations

from dataclasses import replace

from pipesched.problem.features.chain_arcs import NO_ARCS
from pipesched.problem.problem import Problem


def without_arcs_between_chains(problem: Problem) -> Problem:
    """The problem itself where there are none.

    A forward takes what it took, all of which its own backward gives back: that of another chain did it no sooner.
    """
    if not problem.chain_arcs.arcs:
        return problem
    stages = []
    for stage in problem.stages:
        taken = stage.activation + stage.lent
        held_for_weights = stage.activation - stage.freed
        stages.append(replace(stage, activation=taken, freed=taken - held_for_weights, lent=0, collected=0))
    return replace(problem, stages=tuple(stages), chain_arcs=NO_ARCS)
