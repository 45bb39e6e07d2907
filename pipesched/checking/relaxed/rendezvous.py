"""Argument: without tasks that send, and with receipts at any time after the sending pass, no schedule takes longer.

A receipt stays a task of its pass, on a stream of its device, which begins once the pass that sends has ended. Every
schedule in which transfers occupy both devices is one of these, when what sends is left out of it.
"""

from __future__ import annotations

from dataclasses import replace

from pipesched.problem.problem import Problem


def without_rendezvous(problem: Problem) -> Problem:
    """The problem itself where transfers occupy at most their sender."""
    if not problem.resources.rendezvous:
        return problem
    resources = replace(problem.resources, transfer_stream=None, rendezvous=False)
    return replace(problem, resources=resources, links=(), stages=tuple(replace(s, transfer=0) for s in problem.stages))
