"""Half and a quarter of the memory: what offload, recomputation and both are worth.

    python -m benchmarks.memory_saving --write docs/results/memory-saving.md

One pipeline, best known without a limit of memory; with less of it the search under each of the options, and the
published schedules of each option, for several lengths of a copy.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import Any

from benchmarks.reporting.command_line import limits_of, parser_of
from benchmarks.reporting.machine import machine
from benchmarks.reporting.page import exit_code, show, table
from heuristics.catalogue import HEURISTICS
from pipesched.files.problem_file import problem_from
from pipesched.problem.problem import Problem
from pipesched.results.solution import Solution
from solver.limits import Limits
from solver.published import candidate
from solver.solve import solve

COMMAND = "python -m benchmarks.memory_saving"
DEVICES, MICROBATCHES, FORWARD, BACKWARD, WEIGHT, TRANSFER = 4, 8, 10, 10, 10, 1
# Copies in units of a forward, and memory in activations: half and a quarter of what 1F1B needs.
RATIOS = (0.25, 0.5, 1, 2, 4)
ROOMS = (2, 1)
HEAD = (
    *("memory", "copy / forward", "kept", "offload", "recompute", "both"),
    *("pipeoffload-full", "pipeoffload-half", "uniform-recompute"),
)


def problem(room: int | None, ratio: float | None, recompute: bool) -> Problem:
    """The pipeline with so much memory; copies of a length, or none; recomputation of everything, or none."""
    memory: dict[str, Any] = {} if room is None else {"capacity": room}
    if ratio is not None:
        memory["offload"] = {"out": ratio * FORWARD, "in": ratio * FORWARD}
    if recompute:
        memory["recompute"] = [{"name": "full", "time": FORWARD, "keeps": 0}]
    times = {"forward": FORWARD, "backward": BACKWARD, "weight": WEIGHT, "transfer": TRANSFER}
    return problem_from({"devices": DEVICES, "microbatches": MICROBATCHES, "times": times, "memory": memory})


def published(one: Problem, name: str) -> float | None:
    """The makespan of a published schedule, with the waits that memory needs; None where it does not fit."""
    found = candidate(one, HEURISTICS[name])
    return one.in_units(found.metrics.makespan_ticks) if found.fits and found.metrics is not None else None


def rows(limits: Limits) -> Iterator[list[str]]:
    """A row for each length of a copy and memory."""
    for room in ROOMS:
        alone = _said(solve(problem(room, None, False), limits))
        again = problem(room, None, True)
        recomputed, uniform = _said(solve(again, limits)), published(again, "uniform-recompute")
        for ratio in RATIOS:
            copies = problem(room, ratio, False)
            offloaded, both = solve(copies, limits), solve(problem(room, ratio, True), limits)
            full, half = (published(copies, f"pipeoffload-{which}") for which in ("full", "half"))
            cells = [alone, _said(offloaded), recomputed, _said(both), *map(_number, (full, half, uniform))]
            row = [str(room), f"{ratio:g}", *cells]
            print(" | ".join(row), flush=True)
            yield row


def _said(found: Solution) -> str:
    if found.value is None:
        return "–"
    return f"{found.value:g}" if not found.gap else f"{found.value:g} (≥ {found.lower_bound:g})"


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:g}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Solve, and write the table."""
    args = parser_of(COMMAND, __doc__, 15, "each solve").parse_args(arguments)
    limits = limits_of(args)
    ample = _said(solve(problem(None, None, False), limits))
    described = f"{machine(args.seed, args.workers)}, {args.seconds:g} s a solve. Without a limit of memory: {ample}."
    show(args.write, COMMAND, f"{described}\n\n{table(HEAD, list(rows(limits)))}")
    return 0


if __name__ == "__main__":
    sys.exit(exit_code(main))
