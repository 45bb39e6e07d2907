"""Lagrangian multipliers of one device's time and memory, from a linear program; any multipliers give a valid bound."""

from __future__ import annotations

import numpy as np
from ortools.linear_solver.python import model_builder

from formulations.single_device.time_indexed_lp import TimeIndexed
from formulations.single_device.visits import OneDevice
from solver.bounds.lagrangian.subproblem import Multipliers

# The value of the whole device, about: multipliers are integers, and sums of them fit into 64 bits.
_ALL = 2.0**56
# Most instants, most instants times passes of a trip (the size of the program), and by how much fewer are acceptable.
_INSTANTS, _SIZE, _FEWER = 2000, 30_000, 5
# How many steps between instants are tried, and the share of a trip's time that rounding to them may lose.
_TRIED, _LITTLE = 2000, 0.005
# Most seconds for the program, which cannot be interrupted.
_PATIENCE = 15.0
# A first-order method is fast here, and multipliers need no more digits.
_SOLVER = "pdlp"
_PARAMETERS = (
    "termination_criteria { iteration_limit: 50000 "
    "simple_optimality_criteria { eps_optimal_absolute: 1e-4 eps_optimal_relative: 1e-4 } }"
)


def find_multipliers(device: OneDevice, until: int, seconds: float) -> Multipliers | None:
    """Multipliers under which few micro-batches reach the device's value up to `until` ticks; None if none are found.

    `seconds` limit the linear program, to 15 at most.
    """
    program = TimeIndexed(device, until, _step(device, until))
    solver = model_builder.Solver(_SOLVER)
    solver.set_time_limit_in_seconds(min(_PATIENCE, max(0.01, seconds)))
    solver.set_solver_specific_parameters(_PARAMETERS)
    if solver.solve(program.model) != model_builder.SolveStatus.OPTIMAL:
        return None
    values = np.maximum(0.0, np.asarray(solver.dual_values(program.model.get_linear_constraints()), dtype=float))
    total = values[program.running + program.holding].sum()
    if not 0 < total < np.inf:
        return None
    running = np.round(values[program.running] * (_ALL / total)).astype(np.int64)
    holding = np.zeros_like(running)
    if device.capacity:
        holding = np.round(values[program.holding] * (_ALL / total / device.capacity)).astype(np.int64)
    charged = (running > 0) | (holding > 0)
    return Multipliers(np.asarray(program.instants)[charged], running[charged], holding[charged])


def _step(device: OneDevice, until: int) -> int:
    """The longest step between instants with which little is lost when lags are rounded down to it."""
    visits = [visit for trip in device.trips for visit in trip.visits]
    lags = [visit.ticks + visit.away for visit in visits]
    lags += [visit.later.ticks for visit in visits if visit.later is not None]
    each = np.array([lag for lag in lags if lag] or [1])
    most = min(_INSTANTS, _SIZE // len(lags))
    shortest, longest = max(1, until // max(1, most)), max(1, until * _FEWER // max(1, most))
    steps = np.unique(np.linspace(shortest, longest, _TRIED, dtype=int))
    lost = (each[:, None] % steps).sum(axis=0) / each.sum()
    little = steps[lost <= max(_LITTLE, lost.min())]
    return int(little[-1])
