"""Ticks and memory of stages scaled by the factors of micro-batches, for many rows at once."""

from __future__ import annotations

import numpy as np

from pipesched.problem.problem import Problem
from pipesched.schedule.pass_table import Ints, Whole, whole


def by_microbatch(problem: Problem, numbers: Whole, microbatches: Ints, times: int = 4) -> Whole:
    """Return each of `numbers` times the factor of its micro-batch, exactly.

    `numbers` are ticks or memory of stages, with an entry for each row; `microbatches` is the micro-batch of each row.
    A micro-batch that the problem lacks counts as number 0. The result has integers so wide that up to `times` of the
    products can be added without overflow.
    """
    if not problem.walks.scale:
        return numbers
    parts = problem.walks.parts
    factors = [scale.numerator * (parts // scale.denominator) for scale in problem.walks.scale]
    known = (microbatches >= 0) & (microbatches < len(factors))
    # Of micro-batches that there are none of, which the validator tells of, the numbers are those of the first.
    factor = np.array(factors, object)[np.where(known, microbatches, 0)]
    return whole((numbers.astype(object) // parts * factor).tolist(), times)
