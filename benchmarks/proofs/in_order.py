"""Problems whose micro-batches are unequal and keep their order, drawn from ones whose micro-batches are alike."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from math import ceil
from random import Random

from benchmarks.proofs.exhaustive.optimum import least_value
from benchmarks.proofs.joint import orders
from benchmarks.proofs.joint.orders import Answer, compared
from pipesched.problem.feasibility import why_infeasible
from pipesched.problem.problem import Objective, Problem
from pipesched.problem.rescale import with_microbatch_scale

_FACTORS = tuple(map(Fraction, ("0.5", "1", "1.5", "2", "3")))


def in_order(problem: Problem) -> Problem:
    """The same with factors, the same each time; memory for the largest micro-batch, links as long both ways."""
    turned = zip(*problem.links, strict=True)
    links = tuple(tuple(map(max, row, column)) for row, column in zip(problem.links, turned, strict=True))
    random = Random(problem.microbatches)
    scale = [random.choice(_FACTORS) for _ in range(problem.microbatches)]
    found = with_microbatch_scale(replace(problem, links=links), scale, fixed=True)
    if why_infeasible(found) is None:
        return found
    return found.with_room([None if own is None else ceil(own * max(scale)) for own in found.room])


def compared_to(problem: Problem, objective: Objective, value: Fraction, most_steps: int) -> Answer:
    """The optimum as compared with a value in ticks, whether micro-batches keep an order or not."""
    if not problem.microbatch_scale:
        return compared(problem, objective, value, most_steps)
    least = least_value(problem, objective, ceil(value))
    return Answer(below=least is not None and least < value, attained=least == value)


def least_below(problem: Problem, objective: Objective, value: Fraction) -> Fraction:
    """The optimum, where it is known to be below a value, whether micro-batches keep an order or not."""
    if not problem.microbatch_scale:
        return orders.least_below(problem, objective, value)
    least = least_value(problem, objective, ceil(value))
    assert least is not None
    return least
