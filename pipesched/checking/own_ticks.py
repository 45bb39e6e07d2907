"""Conversion of evidence to the problem's ticks: a file may state times in finer ticks than the bound was found in."""

from __future__ import annotations

from dataclasses import replace
from math import ceil

from pipesched.problem.problem import Problem
from pipesched.results.diagram_evidence import Diagram
from pipesched.results.evidence import Evidence


def in_own_ticks(problem: Problem, evidence: Evidence | None) -> Evidence | None:
    """Return the evidence with a diagram's threshold in the problem's ticks, rounded up; any threshold is sound.

    Evidence without one, and None, is returned unchanged.
    """
    if isinstance(evidence, Diagram):
        if evidence.below is None:
            return evidence
        tick = problem.tick if evidence.tick is None else evidence.tick
        return replace(evidence, below=ceil(evidence.below * tick / problem.tick), tick=problem.tick)
    return evidence
