"""Expert parallelism: published schedules and ours on Kimi K2's layers, at equal device memory, parameters counted.

    python -m benchmarks.expert_parallel --write docs/results/expert-parallel.md --plot docs/images/expert-parallel.png

The first tables have one model on as many devices on every placement that a schedule asks for. The last one has four
devices, with communication from half to twice as long as computation.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import NamedTuple

from benchmarks.cases.kimi_k2 import example, on_placement, with_communication, work
from benchmarks.reporting.command_line import limits_of, parser_of
from benchmarks.reporting.exposed_plot import draw
from benchmarks.reporting.machine import machine
from benchmarks.reporting.page import exit_code, show, table
from heuristics.catalogue import HEURISTICS
from pipesched.problem.passes import F
from pipesched.problem.problem import Problem
from pipesched.schedule.metrics import measure
from pipesched.schedule.stream_use import exposed_within, stream_use
from pipesched.schedule.timeline import Timeline
from pipesched.simulation.simulator import simulate
from solver.bounds.analytic.catalogue import certificates
from solver.limits import Limits
from solver.solve import solve

COMMAND = "python -m benchmarks.expert_parallel"
RATIOS = tuple(Fraction(n, 4) for n in (2, 3, 4, 5, 6, 8))
# The name in the table, the placement, the schedule.
PUBLISHED = (
    ("1F1B", "linear", "1f1b"),
    ("1F1B, pairs interleaved", "linear", "1f1b-overlap"),
    ("VPP", "interleaved", "interleaved-1f1b"),
    ("VPP, Megatron's pairs", "interleaved", "interleaved-1f1b-overlap"),
    ("VPP + 1 (Kimi K2)", "interleaved", "kimi-k2"),
    ("DualPipe", "bidirectional", "dualpipe"),
    ("DualPipeV", "v-shape", "dualpipe-v"),
)
OURS = ("interleaved", "v-shape")


class Row(NamedTuple):
    """A schedule of a table; `bound`, in ticks, is that of its placement."""

    name: str
    timeline: Timeline
    bound: Fraction

    @property
    def makespan(self) -> int:
        return measure(self.timeline).makespan_ticks

    @property
    def exposed(self) -> Fraction:
        """Of all communication, what runs while its device computes nothing."""
        use = [one for one in stream_use(self.timeline) if one.of.stream != self.timeline.problem.streams[0]]
        return Fraction(sum(one.exposed for one in use), sum(one.busy for one in use))


def rows(problem: Problem, limits: Limits | None) -> list[Row]:
    """The published schedules, and ours where there are limits."""
    found = []
    for label, where, name in PUBLISHED:
        placed = on_placement(problem, where)
        found.append(Row(label, simulate(placed, HEURISTICS[name].order(placed)), _bound(placed)))
    for where in OURS if limits else ():
        placed = on_placement(problem, where)
        solution = solve(placed, limits)
        print(f"{placed.name}: solved, {solution.status}", file=sys.stderr)
        if solution.timeline is not None:
            found.append(Row(f"ours, {where}", solution.timeline, Fraction(solution.lower_bound_ticks)))
    return found


def _bound(problem: Problem) -> Fraction:
    return Fraction(certificates(problem, problem.objective)[0].value_ticks)


def steady(timeline: Timeline) -> Fraction:
    """Of the communication from each device's first backward to its last forward, what is exposed."""
    busy = exposed = 0
    for device in range(timeline.problem.devices):
        passes = timeline.schedule.passes_on(device)
        since = min(timeline.start(p) for p in passes if p.kind is not F)
        until = max(timeline.end(p) for p in passes if p.kind is F)
        for one in exposed_within(timeline, device, since, until):
            busy, exposed = busy + one.busy, exposed + one.exposed
    return Fraction(exposed, busy) if busy else Fraction(0)


def free_transfers(timeline: Timeline) -> int:
    """The makespan of the same order if transfers between devices took no time."""
    free = timeline.problem.with_stages(transfer=(0,) * len(timeline.problem.stages))
    return measure(simulate(free, timeline.schedule)).makespan_ticks


def schedules_table(problem: Problem, limits: Limits) -> str:
    """Time, bound of the placement, memory with parameters, what is exposed, what transfers cost.

    The bound is one of schedules that fit into memory: others are not compared with it.
    """
    lines = []
    for row in rows(problem, limits):
        own, metrics = row.timeline.problem, measure(row.timeline)
        held = [peak + static for peak, static in zip(metrics.peak_quanta, own.static, strict=True)]
        fits = all(room is None or peak <= room for peak, room in zip(metrics.peak_quanta, own.room, strict=True))
        gap = 1 - row.bound / row.makespan
        lines.append(
            [
                row.name,
                f"{own.in_units(row.makespan):.2f}",
                f"{100 * float(gap):.2f}" if fits else "–",
                f"{float(max(held) * own.resolution):.1f}" + ("" if fits else ", too much"),
                f"{100 * float(row.exposed):.1f}",
                f"{100 * float(steady(row.timeline)):.1f}",
                f"{own.in_units(row.makespan - free_transfers(row.timeline)):.2f}",
            ]
        )
    unit, memory = problem.time_unit, problem.memory_unit
    head = ("schedule", f"time, {unit}", "above the bound of its placement, %", f"memory, {memory}", "EP exposed, %")
    return table((*head, "in the steady state, %", f"PP, {unit}"), lines)


def communication_table(problem: Problem, limits: Limits, plot: Path | None) -> str:
    """A row for each ratio of communication to computation; memory is not limited."""
    free = problem.with_room((None,) * problem.devices)
    lines, shares = [], dict[str, list[float]]()
    for ratio in RATIOS:
        found = rows(with_communication(free, ratio), limits)
        compute = Fraction(work(free)[0] * free.microbatches, free.devices)
        least = max(Fraction(0), 1 - 1 / ratio)
        for row in found:
            shares.setdefault(row.name, []).append(100 * float(row.exposed))
        shares.setdefault("no schedule exposes less", []).append(100 * float(least))
        times = [f"{float(row.makespan * row.timeline.problem.tick / free.tick / compute):.3f}" for row in found]
        ours = (row for row in found if row.name.startswith("ours"))
        bounds = [row.bound * row.timeline.problem.tick / free.tick for row in ours]
        lines.append([f"{float(ratio):g}", *times, f"{float(min(bounds) / compute):.3f}" if bounds else ""])
        print(f"communication {float(ratio):g} of computation: solved", file=sys.stderr)
    if plot:
        draw([float(ratio) for ratio in RATIOS], shares, plot)
    names = [name for name in shares if not name.startswith("no ")]
    return table(("communication / computation", *names, "bound"), lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark."""
    parser = parser_of(COMMAND, __doc__, 60)
    parser.add_argument("--ratio-seconds", type=float, default=15.0, help="for each ratio (default 15)")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="exposed communication over its share, as a picture")
    args = parser.parse_args(arguments)
    limits = limits_of(args)
    short = replace(limits, seconds=args.ratio_seconds)
    mini = example("kimi-k2-mini")
    text = "\n\n".join(
        [
            f"{machine(args.seed, args.workers)}, {args.seconds:g} s a problem, {args.ratio_seconds:g} s a ratio.",
            f"`examples/kimi-k2-mini.yaml`, {mini.devices} devices:",
            schedules_table(mini, limits),
            "`examples/kimi-k2.yaml`, 16 devices:",
            schedules_table(example("kimi-k2"), limits),
            "Times in units of what each device computes, four devices, memory not limited:",
            communication_table(mini, short, args.plot),
        ]
    )
    show(args.write, COMMAND, text)
    return 0


if __name__ == "__main__":
    sys.exit(exit_code(main))
