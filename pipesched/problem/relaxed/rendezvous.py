"""Relaxation: a receipt needs no sender at the same time, and what sends takes no time of its stream."""

from __future__ import annotations

from dataclasses import replace

from pipesched.problem.problem import Problem

ARGUMENT = (
    "The network loses the tasks that send and the condition that a receipt starts together with one. A receipt still "
    "waits for the end of the pass that sends, and no pass waits for a task that sends."
)


def drop_rendezvous(problem: Problem) -> Problem:
    """The problem itself where transfers occupy at most their sender."""
    if not problem.resources.rendezvous:
        return problem
    stages = tuple(replace(stage, transfer=0) for stage in problem.stages)
    return replace(
        problem, stages=stages, links=(), resources=replace(problem.resources, transfer_stream=None, rendezvous=False)
    )
