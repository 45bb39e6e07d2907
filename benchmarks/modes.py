"""Modes: overlapped blocks and fused backwards, published schedules against what the engine finds and proves.

    python -m benchmarks.modes --write docs/results/modes.md

The first table has problems on which blocks gain or a fused backward is cheaper than B and W. The second compares
DualPipe, DualPipeV and 1F1B with overlapped blocks over the length of a block: one model on as many devices, with the
same memory a device, where the parameters that a bidirectional placement holds twice count too.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from fractions import Fraction
from random import Random

from benchmarks.reporting.command_line import limits_of, parser_of
from benchmarks.reporting.machine import machine
from benchmarks.reporting.page import exit_code, show, table
from heuristics.catalogue import HEURISTICS
from pipesched.errors import DoesNotApply
from pipesched.files.problem_file import problem_from
from pipesched.problem.problem import Problem
from pipesched.results.solution import Solution
from pipesched.schedule.metrics import measure
from pipesched.simulation.simulator import simulate
from solver.limits import Limits
from solver.solve import solve

COMMAND = "python -m benchmarks.modes"
RATIOS = tuple(Fraction(n, 20) for n in range(14, 21))
# One model: 8 layers on 4 devices, each layer's F, B and W of 10; what its parameters take, in activations of a layer.
DEVICES, MICROBATCHES, LAYER, PARAMETERS, CAPACITY = 4, 16, 10, 2, 20


def problems() -> Iterator[Problem]:
    """Bidirectional pipelines with blocks, even and uneven, and linear ones whose fused backward is cheaper."""
    for devices, microbatches, capacity in ((8, 20, 9), (4, 8, 5)):
        for spread in (0, 12):
            random = Random(devices)
            names = ("forward", "backward", "weight")
            times = {key: [_near(random, 10, spread) for _ in range(devices)] for key in names}
            columns = zip(times["forward"], times["backward"], times["weight"], strict=True)
            whole = [b + w for b, w in zip(times["backward"], times["weight"], strict=True)]
            blocks = [round(Fraction(8, 10) * (f + b + w), 1) for f, b, w in columns]
            text = f", stages within {spread} %" if spread else ""
            yield problem_from(
                {
                    "name": f"bidirectional p={devices} m={microbatches}, {capacity} activations{text}",
                    "devices": devices,
                    "microbatches": microbatches,
                    "placement": "bidirectional",
                    "times": {**times, "fused": whole, "overlapped": blocks},
                    "memory": {"capacity": capacity},
                }
            )
    for share in map(Fraction, ("0.8", "0.85", "0.9")):
        for room in map(Fraction, ("6", "8.6")):
            yield problem_from(
                {
                    "name": f"linear p=8 m=24, fused {float(share):g} of B + W, {float(room):g} activations",
                    "devices": 8,
                    "microbatches": 24,
                    "times": {"forward": 10, "backward": 10, "weight": 10, "fused": 20 * share, "transfer": 1},
                    "memory": {"capacity": room},
                    "objective": "span",
                }
            )


def _near(random: Random, number: int, spread: int) -> Fraction:
    """A number within so many per cent of another, to one decimal."""
    return round(Fraction(number) * Fraction(random.randint(100 - spread, 100 + spread), 100), 1)


def placed(schedule: str, ratio: Fraction) -> Problem:
    """The model as a schedule places it: two layers a device, or two on each of two devices, and the same memory."""
    placement, layers, copies = {
        "dualpipe": ("bidirectional", 2, 2),
        "dualpipe-v": ("v-shape", 1, 1),
        "1f1b-overlap": ("linear", 2, 1),
    }[schedule]
    stage = layers * LAYER
    return problem_from(
        {
            "name": f"{placement}, block {float(ratio):g}",
            "devices": DEVICES,
            "microbatches": MICROBATCHES,
            "placement": placement,
            "times": {"forward": stage, "backward": stage, "weight": stage, "overlapped": 3 * stage * ratio},
            "memory": {"capacity": CAPACITY, "static": 2 * copies * PARAMETERS, "activation": layers},
        }
    )


def published(problem: Problem, names: Sequence[str] | None = None) -> tuple[str, int] | None:
    """The best published schedule that the memory holds, and its value in ticks."""
    found = []
    for heuristic in HEURISTICS:
        if names is not None and heuristic.name not in names:
            continue
        try:
            timeline = simulate(problem, heuristic.order(problem))
        except DoesNotApply:
            continue
        metrics = measure(timeline)
        peaks = zip(metrics.peak_quanta, problem.room, strict=True)
        if all(room is None or peak <= room for peak, room in peaks):
            found.append((metrics.value_ticks(problem.objective), heuristic.name))
    return (min(found)[1], min(found)[0]) if found else None


def first_table(limits: Limits) -> str:
    """Each problem with its best published schedule, and what the engine finds and proves."""
    lines = []
    for problem in problems():
        best = published(problem)
        solution = solve(problem, limits)
        print(f"{problem.name}: solved", file=sys.stderr)
        old = f"{problem.in_units(best[1]):.6g} ({best[0]})" if best else "none fits"
        lines.append([problem.name, old, *_found(solution)])
    return table(("problem", "best published", "value", "bound", "gap, %"), lines)


def second_table(limits: Limits) -> str:
    """A row a length of block, three columns a placement: the published schedule, ours, our bound."""
    names = ("dualpipe", "dualpipe-v", "1f1b-overlap")
    lines = []
    for ratio in RATIOS:
        line = [f"{float(ratio):g}"]
        for name in names:
            problem = placed(name, ratio)
            best = published(problem, (name,))
            solution = solve(problem, limits)
            value, bound, _ = _found(solution)
            line += [f"{problem.in_units(best[1]):.6g}" if best else "too much memory", value, bound]
        print(f"block {float(ratio):g}: solved", file=sys.stderr)
        lines.append(line)
    head = ("block / (F + BW)", *(f"{name}{what}" for name in names for what in ("", ": placement's best", ": bound")))
    return table(head, lines)


def _found(solution: Solution) -> tuple[str, str, str]:
    if solution.value is None:
        return "none", f"{solution.lower_bound:.6g}", ""
    return f"{solution.value:.6g}", f"{solution.lower_bound:.6g}", f"{100 * (solution.gap or 0):.2f}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark."""
    args = parser_of(COMMAND, __doc__, 60).parse_args(arguments)
    described, limits = f"{machine(args.seed, args.workers)}, {args.seconds:g} s a problem.", limits_of(args)
    show(args.write, COMMAND, "\n\n".join([described, first_table(limits), second_table(limits)]))
    return 0


if __name__ == "__main__":
    sys.exit(exit_code(main))
