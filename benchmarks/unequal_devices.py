"""What arguments about some of the devices can prove of DynaPipe's interleaved instance, order of micro-batches free.

    python -m benchmarks.unequal_devices --seconds 30 --write docs/results/unequal.md

On the devices named one pass runs at a time; on all others any number do, so that their passes are delays. A schedule
of that takes less time than one of all devices. A bound that looks at these devices, and knows of the others no more
than how long their passes take, is no higher than its least time, and so no higher than the value found.
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections.abc import Iterable, Sequence
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

from ortools.sat.python import cp_model

from benchmarks.reporting.machine import machine
from benchmarks.reporting.page import exit_code, put_or_print, table
from benchmarks.unequal import dynapipe
from pipesched.problem.passes import BW, F, Pass
from pipesched.problem.problem import Problem

COMMAND = "python -m benchmarks.unequal_devices"


class Relaxed(NamedTuple):
    """The least time found and the least that is possible, in ticks; both None where no schedule was found in time."""

    value: int | None
    bound: int


def relaxed(problem: Problem, devices: Iterable[int], seconds: float, workers: int) -> Relaxed:
    """The makespan where these devices alone run one pass at a time; transfers are free, backwards fused."""
    model = cp_model.CpModel()
    busy: dict[int, list[cp_model.IntervalVar]] = {device: [] for device in devices}
    most = sum(problem.duration(p) for j in range(problem.microbatches) for p in _walk(problem, j))
    makespan = model.new_int_var(0, most, "makespan")
    for j in range(problem.microbatches):
        ready: cp_model.LinearExprT = 0
        for p in _walk(problem, j):
            start, ticks = model.new_int_var(0, most, str(p)), problem.duration(p)
            model.add(start >= ready)
            if problem.device(p) in busy:
                busy[problem.device(p)].append(model.new_fixed_size_interval_var(start, ticks, str(p)))
            ready = start + ticks
        model.add(makespan >= ready)
    for intervals in busy.values():
        model.add_no_overlap(intervals)
    model.minimize(makespan)
    solver = cp_model.CpSolver()
    solver.parameters.max_time_in_seconds, solver.parameters.num_workers = seconds, workers
    known = solver.solve(model) in (cp_model.OPTIMAL, cp_model.FEASIBLE)
    return Relaxed(round(solver.objective_value) if known else None, round(solver.best_objective_bound))


def _walk(problem: Problem, microbatch: int) -> list[Pass]:
    """A micro-batch's passes in their order."""
    chain = problem.chain_of(microbatch)
    return [*(Pass(F, s, microbatch) for s in chain), *(Pass(BW, s, microbatch) for s in reversed(chain))]


def relaxed_table(problem: Problem, numbers: Iterable[int], seconds: float, workers: int) -> str:
    """A row for each choice of so many devices."""
    lines = []
    for number in numbers:
        for devices in combinations(range(problem.devices), number):
            found = relaxed(problem, devices, seconds, workers)
            said = "" if found.value is None else f"{problem.in_units(found.value):.6g}"
            lines.append([", ".join(map(str, devices)), said, f"{problem.in_units(found.bound):.6g}"])
            print(f"devices {devices}: {found}", file=sys.stderr, flush=True)
    return table(("devices that run one pass at a time", "found", "at least"), lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark."""
    parser = ArgumentParser(COMMAND, description=__doc__, formatter_class=RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=30.0, help="for each choice of devices (default 30)")
    parser.add_argument("--workers", type=int, default=4, help="threads of each search (default 4)")
    parser.add_argument("--most", type=int, default=4, help="choices of up to so many devices (default 4)")
    parser.add_argument("--write", type=Path, metavar="PAGE", help="put the table into this page of the docs")
    args = parser.parse_args(arguments)
    return exit_code(lambda: _run(args))


def _run(args: Namespace) -> int:
    problem = next(one for one in dynapipe() if one.name == "DynaPipe, interleaved, free")
    text = relaxed_table(problem, range(1, args.most + 1), args.seconds, args.workers)
    put_or_print(args.write, COMMAND, f"{machine(0, args.workers)}, {args.seconds:g} s a row.\n\n{text}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
