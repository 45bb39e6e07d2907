"""Argument: rows that every schedule keeps, each times a multiplier, add up to a bound on the value (weak duality)."""

from __future__ import annotations

from fractions import Fraction
from math import ceil

from pipesched.checking.finding import RefusedEvidenceError
from pipesched.checking.relaxation.rows import VALUE, Rows, Variable
from pipesched.problem.problem import Problem
from pipesched.results.evidence import RowMultipliers
from pipesched.results.relaxation_rows import RowKind


def linear_relaxation(problem: Problem, evidence: RowMultipliers, stated: Fraction | int) -> Fraction:
    """What the multipliers prove in ticks, if some schedule has less than the value stated.

    The value is the sum of the rows, each times its multiplier, and what remains of every variable times that. What
    remains is the least it can be over all values of the variable: literals are 0 to 1, times 0 to the latest that a
    start need be, and the value is no more than stated.
    """
    if evidence.denominator < 1 or len(evidence.rows) != len(evidence.multipliers):
        raise RefusedEvidenceError("not as many multipliers as rows, or a denominator below 1")
    rows = Rows(problem)
    scales, unit = _scales(problem, evidence)
    total, rest = 0, dict[Variable, int]()
    for (kind, operations), multiplier in zip(evidence.rows, evidence.multipliers, strict=True):
        row, y = rows.row(kind, operations), multiplier * scales[kind]
        if y < 0 and not row.equal:
            raise RefusedEvidenceError(f"a multiplier below 0 of a row that only bounds from below ({kind})")
        total += y * row.at_least
        for variable, coefficient in row.terms:
            rest[variable] = rest.get(variable, 0) - y * coefficient
    rest[VALUE] = rest.get(VALUE, 0) + unit
    most = {"before": 1, "fused": 1, "value": ceil(stated)}
    latest = rows.latest()
    for (name, *_), left in rest.items():
        total += min(0, left * most.get(name, latest))
    return Fraction(total, unit)


def _scales(problem: Problem, evidence: RowMultipliers) -> tuple[dict[RowKind, int], int]:
    """What a multiplier of each kind of row is to be multiplied by, and what then is one.

    Multipliers of times have no unit. Those of rows without times are ticks, and those of memory ticks for each unit.
    """
    ticks = evidence.tick / problem.tick
    memory = ticks * problem.resolution / evidence.memory_unit
    common = ticks.denominator * memory.denominator
    scales = dict.fromkeys(RowKind, common)
    scales[RowKind.FUSED], scales[RowKind.MEMORY] = int(ticks * common), int(memory * common)
    return scales, evidence.denominator * common
