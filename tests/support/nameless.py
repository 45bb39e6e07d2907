"""Problems without their names, to compare what is to be solved."""

from __future__ import annotations

from dataclasses import replace

from pipesched.problem.problem import Problem


def nameless(problem: Problem) -> Problem:
    """Return the problem without its name and the name of its placement."""
    return replace(problem, name="", placement=replace(problem.placement, name=""))
