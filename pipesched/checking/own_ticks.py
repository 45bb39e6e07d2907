"""Evidence in the problem's own ticks: files state times in ticks that may be finer than those it was found in."""

from __future__ import annotations

from dataclasses import replace
from math import ceil

from pipesched.problem.problem import Problem
from pipesched.results.diagram_evidence import Diagram
from pipesched.results.evidence import Evidence


def in_own_ticks(problem: Problem, evidence: Evidence | None) -> Evidence | None:
    """The same with the value below which orders are followed in the problem's ticks; any is sound, by rounding too."""
    if isinstance(evidence, Diagram):
        if evidence.below is None:
            return evidence
        tick = problem.tick if evidence.tick is None else evidence.tick
        return replace(evidence, below=ceil(evidence.below * tick / problem.tick), tick=problem.tick)
    return evidence
