"""Kimi K2's offload: its schedule with and without copies, the rules of others and ours, and copies of other lengths.

    python -m benchmarks.kimi_offload --write docs/results/expert-parallel.md

A row says what the same order would save if copies, or transfers between devices, took no time. PipeOffload's orders
have the waits that memory needs.
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from os import getloadavg
from pathlib import Path

from benchmarks.cases.kimi_k2 import example
from benchmarks.expert_parallel import free_transfers
from benchmarks.reporting.machine import machine
from benchmarks.reporting.page import exit_code, put_or_print, table
from heuristics.catalogue import HEURISTICS
from pipesched.problem.passes import B, F, W
from pipesched.problem.problem import Problem
from pipesched.schedule.host_memory import host_steps, hosts_of
from pipesched.schedule.metrics import measure
from pipesched.schedule.stream_use import stream_use
from pipesched.schedule.timeline import Timeline
from pipesched.simulation.simulator import simulate
from pipesched.validation.validator import validate
from solver.bounds.saving.certificates import certificates
from solver.limits import Limits
from solver.published import candidate
from solver.solve import solve

COMMAND = "python -m benchmarks.kimi_offload"
PUBLISHED = (
    ("VPP + 1, nothing copied", "kimi-k2"),
    ("VPP + 1, offload (Kimi K2)", "kimi-k2-offload"),
    ("PipeOffload, all", "pipeoffload-full"),
    ("PipeOffload, half", "pipeoffload-half"),
)
# A copy, each way, over what a forward and its backward compute of the same stage.
RATIOS = tuple(Fraction(n, 4) for n in (1, 2, 3, 4, 5, 6, 8))


def schedules_table(problem: Problem, limits: Limits) -> str:
    """Published schedules, whether they fit or not, and ours; against the bound of the problem."""
    solution = solve(problem, limits)
    print(f"{problem.name}: solved, {solution.status}", file=sys.stderr)
    bound = max(Fraction(solution.lower_bound_ticks), Fraction(certificates(problem, problem.objective)[0].value))
    tried = [(label, candidate(problem, HEURISTICS[name]).timeline) for label, name in PUBLISHED]
    found = [(label, timeline) for label, timeline in tried if timeline is not None]
    if solution.timeline is not None:
        found.append(("ours", solution.timeline))
    lines = [_line(label, timeline, bound * problem.tick) for label, timeline in found]
    head = ("schedule", f"time, {problem.time_unit}", "above the bound, %", f"memory, {problem.memory_unit}")
    exposed = ("EP exposed, %", f"PP, {problem.time_unit}", f"copies, {problem.time_unit}")
    return table((*head, f"host, {problem.memory_unit}", *exposed), lines)


def _line(label: str, timeline: Timeline, bound: Fraction) -> list[str]:
    problem, metrics = timeline.problem, measure(timeline)
    held = max(peak + static for peak, static in zip(metrics.peak_memory, problem.static, strict=True))
    fits = not validate(timeline)
    gap = 1 - bound / (metrics.makespan * problem.tick)
    return [
        label,
        f"{problem.in_units(metrics.makespan):.2f}",
        f"{100 * float(gap):.2f}" if fits else "–",
        f"{float(held * problem.resolution):.1f}" + ("" if fits else ", too much"),
        f"{float(_host(timeline) * problem.resolution):.1f}",
        f"{100 * float(_exposed(timeline)):.1f}",
        f"{problem.in_units(metrics.makespan - free_transfers(timeline)):.2f}",
        f"{problem.in_units(metrics.makespan - free_copies(timeline)):.2f}",
    ]


def _host(timeline: Timeline) -> int:
    """The most that any host holds."""
    return max(level for _, devices in hosts_of(timeline) for _, level in host_steps(timeline, devices))


def _exposed(timeline: Timeline) -> Fraction:
    """Of dispatch and combine, what runs while its device computes nothing."""
    problem = timeline.problem
    copying = {one for stage in problem.stages if stage.offload for one in stage.offload[2:4]}
    use = [one for one in stream_use(timeline) if one.of.stream not in {problem.streams[0], *copying}]
    return Fraction(sum(one.exposed for one in use), sum(one.busy for one in use))


def free_copies(timeline: Timeline) -> int:
    """The makespan of the same order if copies took no time."""
    return measure(simulate(with_copies(timeline.problem, Fraction(0)), timeline.schedule)).makespan


def with_copies(problem: Problem, ratio: Fraction) -> Problem:
    """Copies each way so many times as long as their stage's forward and backward compute."""
    stages = []
    for stage in problem.stages:
        assert stage.offload is not None
        ticks = round(ratio * stage.compute_ticks(F, B, W))
        stages.append(replace(stage, offload=stage.offload._replace(out_ticks=ticks, in_ticks=ticks)))
    return replace(problem, stages=tuple(stages))


def lengths(problem: Problem) -> Iterator[list[str]]:
    """A row for each length of copies: the schedule that offloads against the same one without copies."""
    kept = measure(simulate(problem, HEURISTICS["kimi-k2"].order(problem))).makespan
    for ratio in RATIOS:
        longer = with_copies(problem, ratio)
        timeline = simulate(longer, HEURISTICS["kimi-k2-offload"].order(longer))
        found = measure(timeline).makespan
        cost = found - free_copies(timeline)
        yield [
            f"{float(ratio):g}",
            f"{longer.in_units(found):.2f}",
            f"{100 * (found / kept - 1):.1f}",
            f"{longer.in_units(cost):.2f}",
        ]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark."""
    parser = ArgumentParser(COMMAND, description=__doc__, formatter_class=RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60.0, help="for each problem (default 60)")
    parser.add_argument("--workers", type=int, default=2, help="threads of each search (default 2)")
    parser.add_argument("--small", action="store_true", help="four devices only")
    parser.add_argument("--write", type=Path, metavar="PAGE", help="put the tables into this page of the docs")
    args = parser.parse_args(arguments)
    return exit_code(lambda: _run(args))


def _run(args: Namespace) -> int:
    limits, load = Limits(seconds=args.seconds, workers=args.workers), getloadavg()[0]
    tables = []
    for name in ("kimi-k2-offload-mini", "kimi-k2-offload")[: 1 if args.small else 2]:
        problem = example(name)
        text = f"`examples/{name}.yaml`, {problem.devices} devices:"
        tables += [text, schedules_table(problem, limits)]
    unit = example("kimi-k2-offload-mini").time_unit
    head = ("copy / computation of a pair", f"time, {unit}", "above nothing copied, %", f"copies, {unit}")
    tables += ["Copies of other lengths, `kimi-k2-offload` on four devices:"]
    tables += [table(head, list(lengths(example("kimi-k2-offload-mini"))))]
    said = f"{args.seconds:g} s a problem; load of the machine at the beginning and at the end {load:.0f}, "
    opening = f"{machine(0, args.workers)}, {said}{getloadavg()[0]:.0f}."
    put_or_print(args.write, COMMAND, "\n\n".join([opening, *tables]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
