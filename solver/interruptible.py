"""Runs CP-SAT so that it can be interrupted."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Event

from ortools.sat.python import cp_model


def solve_until(
    solver: cp_model.CpSolver,
    model: cp_model.CpModel,
    stop: Event,
    listener: cp_model.CpSolverSolutionCallback | None = None,
) -> object:
    """CP-SAT's status, on a thread of its own: Python handles signals on the main one only, and only while that runs.

    A stop that is asked for before CP-SAT has begun would be lost, so it is repeated until the search is over.
    """
    with ThreadPoolExecutor(max_workers=1) as pool:
        search = pool.submit(solver.solve, model, listener)
        while True:
            try:
                return search.result(timeout=0.05)
            except TimeoutError:
                if stop.is_set():
                    solver.stop_search()
            except BaseException:
                solver.stop_search()
                raise
