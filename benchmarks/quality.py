"""How good schedules and proofs are on the Zero Bubble paper's profiles, beside that paper's search and plain CP-SAT.

    python -m benchmarks.quality --seconds 60 --workers 2 > table.md

Both rivals run on the same machine in the same run: the paper's own search as the row `zb`, and a plain CP-SAT model
(intervals, no-overlap, cumulative; no order literals, no bounds) from the same first schedule with the same time.
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from collections.abc import Iterator
from threading import Event

from benchmarks.machine import machine
from formulations.full_horizon import FullHorizon
from pipesched.metrics import measure
from pipesched.problem import Problem
from pipesched.solution import Solution, gap
from solver.cp_sat import improve
from solver.limits import Limits
from solver.solve import solve
from tests.published import CAPS, ROWS

HEADER = (
    "| problem | memory | zb's search | best found | bubble | lower bound | gap | proved by | seconds | plain gap |",
    "|---|---|---|---|---|---|---|---|---|---|",
)


def problems() -> Iterator[tuple[str, str, Problem]]:
    """(name, memory in activations a device, problem)."""
    small = ROWS[0]
    for activations in (4, 5, 6, 8):
        memory = {"capacity": activations * 201216, "activation": 201216, "freed_by_backward": 127488}
        yield "1.5B p=4 m=8", str(activations), small.problem(1, devices=4, microbatches=8, memory=memory)
    for row in ROWS:
        for cap in (1, 2):
            yield f"{row.model} p={row.p} m={row.m}", f"{cap}p", row.problem(cap)
    for cap in CAPS[:5]:
        yield f"{small.model} p={small.p} m={small.m}", f"{float(cap):g}p", small.problem(cap)


def plain_gap(solution: Solution, limits: Limits) -> float | None:
    """What the plain model leaves open in the same time, from the same first schedule."""
    first = solution.best_candidate
    if first is None or first.timeline is None or first.metrics is None:
        return None
    value = first.metrics.value(solution.problem.objective)
    model = FullHorizon(solution.problem, first.timeline, value, 0, most_literals=-1)
    outcome = improve(model, limits, limits.seconds, Event(), lambda *_: None)
    if outcome.timeline is not None:
        value = min(value, measure(outcome.timeline).value(solution.problem.objective))
    return gap(value, outcome.bound)


def main() -> None:
    """Print the table, a row as soon as it is measured."""
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    limits = Limits(seconds=args.seconds, workers=args.workers, seed=args.seed)
    print(f"{machine(args.seed, args.workers)}; {args.seconds:g} s a problem\n")
    print("\n".join(HEADER), flush=True)
    for name, memory, problem in problems():
        solution = solve(problem, limits)
        print(_row(name, memory, solution, plain_gap(solution, limits)), flush=True)
        print(f"{name} {memory} done", file=sys.stderr)


def _row(name: str, memory: str, solution: Solution, plain: float | None) -> str:
    problem = solution.problem
    assert solution.metrics is not None
    assert solution.value is not None
    assert solution.certificate is not None
    published = next((c for c in solution.candidates if c.name == "zb" and c.metrics is not None), None)
    rival = "" if published is None or published.metrics is None else f"{problem.in_units(published.metrics.span):.3f}"
    bubble = solution.metrics.bubble(problem.objective)
    cells = [
        name,
        memory,
        rival,
        f"{problem.in_units(solution.value):.3f}",
        f"{bubble:.4f}",
        f"{problem.in_units(solution.lower_bound):.3f}",
        f"{100 * (solution.gap or 0):.2f} %",
        solution.certificate.kind,
        f"{solution.wall_seconds:.1f}",
        "" if plain is None else f"{100 * plain:.2f} %",
    ]
    return "| " + " | ".join(cells) + " |"


if __name__ == "__main__":
    main()
