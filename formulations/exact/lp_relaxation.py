"""The linear relaxation of the exact model, and the exact bounds that dual multipliers of its rows prove.

Leaving out what is not linear and letting literals take any value between 0 and 1 only adds solutions, so a bound of
the relaxation bounds every schedule. Any multipliers of the rows give a valid bound: a floating-point solver may find
them, and `proved` computes exactly what they prove (Neumaier and Shcherbina, Mathematical Programming
99, 2004).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

from formulations.constraints.catalogue import CONSTRAINTS
from formulations.exact.objectives import post_objective
from formulations.exact.valid_inequalities import post_idle
from formulations.variables.model_variables import Model
from pipesched.problem.attainable_spans import Value, least_from
from pipesched.problem.problem import Problem
from pipesched.results.evidence import RowMultipliers
from pipesched.results.relaxation_rows import RowName

# Multipliers are rounded to multiples of 1/SCALE.
_SCALE = 2**50
# CP-SAT writes an open end of a domain as the largest 64-bit integers.
_OPEN = 2**62


class Row(NamedTuple):
    """at_least <= sum of coefficient x variable <= at_most; None where open.

    `rule` says which rule it states, `name` what evidence calls it; None where evidence has no name for it.
    """

    variables: list[int]
    coefficients: list[int]
    at_least: int | None
    at_most: int | None
    rule: str
    name: RowName | None = None


class Relaxation:
    """The rows of the exact model with order literals, and the domains of its variables; minimise variable `value`.

    `at_most` is the value of a known schedule, in ticks. Only these `devices` have no-overlap and memory
    constraints; the others are relaxed to delays, which gives a bound that is lower or the same.
    """

    def __init__(self, problem: Problem, at_most: int, most_literals: int, devices: Collection[int]) -> None:
        self.model = Model(problem, most_literals, devices)
        self.rows: list[Row] = []
        for constraint in CONSTRAINTS:
            constraint.post(self.model)
            self._take(constraint.name)
        idle = post_idle(self.model)
        self._take("non-decreasing idle time")
        self.value = post_objective(self.model, at_most, 0, idle).index
        self._take("objective")
        domains = [list(variable.domain) for variable in self.model.cp.proto.variables]
        self.lower = [domain[0] for domain in domains]
        self.upper = [domain[-1] for domain in domains]

    def _take(self, rule: str) -> None:
        """Read the rows posted since the last time."""
        constraints = self.model.cp.proto.constraints
        for number in range(self._read, len(constraints)):
            row = _row(constraints[number], rule)
            if row is not None:
                self.rows.append(row._replace(name=self.model.row_name(number)))
        self._read = len(constraints)

    _read = 0

    def proved(self, multipliers: Sequence[float]) -> Value:
        """The lower bound in ticks that these multipliers of the rows prove. Exact, whatever they are.

        The rows hold for times of any kind, so that whole ticks play no part.

        value >= sum of y x (row's bound) + the least that (value - sum of y x row) can be over the domains.
        """
        reduced: dict[int, int] = {self.value: _SCALE}
        total = 0
        for row, multiplier in zip(self.rows, multipliers, strict=True):
            y = round(multiplier * _SCALE)
            bound = row.at_least if y > 0 else row.at_most
            if y == 0 or bound is None:
                continue
            total += y * bound
            for variable, coefficient in zip(row.variables, row.coefficients, strict=True):
                reduced[variable] = reduced.get(variable, 0) - y * coefficient
        for variable, rest in reduced.items():
            total += rest * (self.lower[variable] if rest > 0 else self.upper[variable])
        steps = Fraction(total, _SCALE)
        return least_from((steps - self.model.zeros) / self.model.scale, self.model.parts)

    def evidence(self, multipliers: Sequence[float]) -> RowMultipliers | None:
        """The multipliers as `proved` takes them, each of a row that bounds from below.

        None where blocks may overlap, or where a row has no name.
        """
        if self.model.problem.overlaps:
            return None
        names, found = list[RowName](), list[int]()
        for row, multiplier in zip(self.rows, multipliers, strict=True):
            y = round(multiplier * _SCALE)
            if y == 0 or (row.at_least if y > 0 else row.at_most) is None:
                continue
            if row.name is None:
                return None
            names.append(row.name)
            found.append(-y if row.at_least is None else y)
        problem = self.model.problem
        step = problem.tick / self.model.scale
        return RowMultipliers(step, problem.resolution, _SCALE, tuple(names), tuple(found))

    def weights(self, multipliers: Sequence[float]) -> dict[str, int]:
        """How many rows of each rule have a multiplier."""
        used: dict[str, int] = {}
        for row, multiplier in zip(self.rows, multipliers, strict=True):
            if round(multiplier * _SCALE):
                used[row.rule] = used.get(row.rule, 0) + 1
        return used


def _row(constraint: Any, rule: str) -> Row | None:
    """A constraint of CP-SAT's proto as a row; None if it is not linear or holds only under a condition."""
    if constraint.has_linear() and not len(constraint.enforcement_literal):
        linear = constraint.linear
        least, *_, most = linear.domain
        return Row(
            list(linear.vars),
            list(linear.coeffs),
            least if least > -_OPEN else None,
            most if most < _OPEN else None,
            rule,
        )
    if constraint.has_bool_and() and len(constraint.enforcement_literal) == 1:
        if len(constraint.bool_and.literals) != 1:
            return None
        return _clause([-constraint.enforcement_literal[0] - 1, constraint.bool_and.literals[0]], rule)
    if constraint.has_bool_or() and not len(constraint.enforcement_literal):
        return _clause(list(constraint.bool_or.literals), rule)
    if constraint.has_exactly_one():
        row = _clause(list(constraint.exactly_one.literals), rule)
        return row._replace(at_most=row.at_least)
    return None


def _clause(literals: list[int], rule: str) -> Row:
    """At least one of the literals; CP-SAT writes the negation of variable v as -v - 1."""
    signs = [1 if literal >= 0 else -1 for literal in literals]
    variables = [literal if literal >= 0 else -literal - 1 for literal in literals]
    return Row(variables, signs, 1 - sum(literal < 0 for literal in literals), None, rule)
