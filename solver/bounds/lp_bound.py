"""The linear-relaxation bound: GLOP finds dual multipliers, and what they prove is recomputed in exact integers."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator
from math import inf
from threading import Event

from ortools.linear_solver.python import model_builder

from formulations.exact.lp_relaxation import Relaxation
from formulations.variables.model_variables import TooLong
from formulations.variables.order_literals import literal_count
from pipesched.checking.attainable import least_attainable
from pipesched.checking.relaxation.weak_duality import linear_relaxation
from pipesched.problem.attainable_spans import simplest
from pipesched.problem.formatting import amount
from pipesched.problem.problem import Problem
from pipesched.results.certificate import Certificate
from solver.backends.interruptible import run_until
from solver.bounds.analytic.critical_paths import Paths, blocks_outlast_passes

# Beyond this many order literals the relaxation takes minutes.
_MOST_LITERALS = 12_000


def lp_bounds(problem: Problem, at_most: int, seconds: float, stop: Event) -> Iterator[Certificate]:
    """Bounds of the linear relaxation of single devices, within `seconds` in total; `at_most` is a known value.

    The last and the first device of a chain come first, where round trips are shortest and longest, then the device
    with the most work; of others it proves little more.
    """
    deadline = time.monotonic() + seconds
    for devices in _groups(problem):
        left = deadline - time.monotonic()
        if left <= 0 or stop.is_set():
            return
        certificate = lp_bound(problem, at_most, devices, left, stop)
        if certificate is not None:
            yield certificate


def _groups(problem: Problem) -> list[Collection[int]]:
    """The devices to relax to, together where a block could be shorter than one of its passes."""
    if not blocks_outlast_passes(problem):
        return [range(problem.devices)]
    ends = [problem.placement.stage_device[stage] for c in problem.placement.chains for stage in (c[-1], c[0])]
    work = Paths(problem).work
    return [[device] for device in dict.fromkeys([*ends, max(range(problem.devices), key=work)])]


def lp_bound(
    problem: Problem, at_most: int, devices: Collection[int], seconds: float, stop: Event
) -> Certificate | None:
    """What the linear relaxation to these devices proves; None if time or size allow nothing."""
    if literal_count(problem, devices) > _MOST_LITERALS:
        return None
    try:
        relaxation = Relaxation(problem, at_most, _MOST_LITERALS, devices)
    except TooLong:
        return None
    multipliers = _multipliers(relaxation, seconds, stop)
    if multipliers is None:
        return None
    value, evidence = relaxation.proved(multipliers), relaxation.evidence(multipliers)
    if evidence is not None and relaxation.model.zeros:
        # Passes of no duration take a step in the model and none in the check, which may lose a little by that.
        value = min(value, simplest(least_attainable(problem, linear_relaxation(problem, evidence, value))))
    used = relaxation.weights(multipliers)
    counts = ", ".join(f"{count} of {rule}" for rule, count in sorted(used.items(), key=lambda item: -item[1]))
    only = f"device {devices[0]}" if isinstance(devices, list) and len(devices) == 1 else "all devices"
    text = (
        f"Linear relaxation of the exact model of {only}, other devices relaxed to delays: {sum(used.values())} of its "
        f"rows, each times a multiplier, add up to a value of at least {amount(problem, value)} ({counts}). The sum "
        "was checked in integers."
    )
    device = devices[0] if isinstance(devices, list) and len(devices) == 1 else None
    return Certificate("linear relaxation", value, text, device, evidence)


def _multipliers(relaxation: Relaxation, seconds: float, stop: Event) -> list[float] | None:
    """The dual values of the rows, None if time ran out."""
    model = model_builder.Model()  # type: ignore[no-untyped-call]
    for lower, upper in zip(relaxation.lower, relaxation.upper, strict=True):
        model.new_var(lower, upper, False, "")
    helper = model.helper
    for row in relaxation.rows:
        number = helper.add_linear_constraint()
        helper.set_constraint_lower_bound(number, -inf if row.at_least is None else row.at_least)
        helper.set_constraint_upper_bound(number, inf if row.at_most is None else row.at_most)
        for variable, coefficient in zip(row.variables, row.coefficients, strict=True):
            helper.safe_add_term_to_constraint(number, variable, coefficient)
    helper.set_var_objective_coefficient(relaxation.value, 1)
    solver = model_builder.Solver("glop")
    solver.set_time_limit_in_seconds(max(0.01, seconds))
    solver.set_solver_specific_parameters("use_dual_simplex: true")
    status = run_until(stop, lambda: solver.solve(model), solver.stop_search)
    if status != model_builder.SolveStatus.OPTIMAL:
        return None
    return [float(y) for y in solver.dual_values(model.get_linear_constraints())]
