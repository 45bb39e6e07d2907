"""Problems whose micro-batches are unequal and keep their order, drawn from ones whose micro-batches are alike."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from math import ceil
from random import Random

from pipesched.problem.feasibility import why_infeasible
from pipesched.problem.problem import Problem
from pipesched.problem.rescale import with_microbatch_scale

FACTORS = tuple(map(Fraction, ("0.5", "1", "1.5", "2", "3")))


def in_order(problem: Problem) -> Problem:
    """The same with factors, the same each time."""
    random = Random(problem.microbatches)
    return scaled(problem, [random.choice(FACTORS) for _ in range(problem.microbatches)], fixed=True)


def scaled(problem: Problem, scale: Sequence[Fraction], fixed: bool) -> Problem:
    """The same with these factors; memory for the largest micro-batch, links as long as the longer way."""
    turned = zip(*problem.links, strict=True)
    links = tuple(tuple(map(max, row, column)) for row, column in zip(problem.links, turned, strict=True))
    found = with_microbatch_scale(replace(problem, links=links), scale, fixed)
    if why_infeasible(found) is None:
        return found
    return found.with_room([None if own is None else ceil(own * max(scale)) for own in found.room])
