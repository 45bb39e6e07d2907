"""Prices of one device's time and memory, from a linear program. They need not be good: what they prove is exact."""

from __future__ import annotations

import numpy as np
from ortools.linear_solver.python import model_builder

from formulations.time_indexed import OneDevice, TimeIndexed
from solver.cheapest import Prices

# Prices become whole numbers of 1/SCALE, and all that a device has costs less than MOST. It costs about one for each
# micro-batch.
_SCALE, _MOST = 2**40, 2**16
# The number of instants, how many steps between them are tried, and what may be lost of the time of a trip by them.
_LEAST_INSTANTS, _MOST_INSTANTS, _TRIED, _LITTLE = 400, 2000, 2000, 0.005
# A first-order method is fast here, and prices need no more digits.
_SOLVER, _ACCURACY = (
    "pdlp",
    "termination_criteria { simple_optimality_criteria { eps_optimal_absolute: 1e-4 eps_optimal_relative: 1e-4 } }",
)


def find_prices(device: OneDevice, until: int, seconds: float) -> Prices | None:
    """Prices for which few micro-batches can pay all that the device has until then; None if time runs out."""
    program = TimeIndexed(device, until, _step(device, until))
    solver = model_builder.Solver(_SOLVER)
    solver.set_time_limit_in_seconds(max(0.01, seconds))
    solver.set_solver_specific_parameters(_ACCURACY)
    if solver.solve(program.model) != model_builder.SolveStatus.OPTIMAL:
        return None
    values = np.maximum(0.0, np.asarray(solver.dual_values(program.model.get_linear_constraints()), dtype=float))
    if not values[program.running + program.holding].sum() < _MOST:
        return None
    running = np.round(values[program.running] * _SCALE).astype(np.int64)
    holding = np.zeros_like(running)
    if device.capacity:
        holding = np.round(values[program.holding] * (_SCALE / device.capacity)).astype(np.int64)
    charged = (running > 0) | (holding > 0)
    return Prices(np.asarray(program.instants)[charged], running[charged], holding[charged])


def _step(device: OneDevice, until: int) -> int:
    """The longest step between instants with which little is lost when lags are rounded down to it."""
    visits = [visit for trip in device.trips for visit in trip.visits]
    lags = [visit.ticks + visit.away for visit in visits]
    lags += [visit.later.ticks for visit in visits if visit.later is not None]
    each = np.array([lag for lag in lags if lag] or [1])
    shortest, longest = max(1, until // _MOST_INSTANTS), max(1, until // _LEAST_INSTANTS)
    steps = np.unique(np.linspace(shortest, longest, _TRIED, dtype=int))
    lost = (each[:, None] % steps).sum(axis=0) / each.sum()
    little = steps[lost <= max(_LITTLE, lost.min())]
    return int(little[-1])
