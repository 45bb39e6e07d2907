"""How fast the simulator is: 100,000 passes, as a ratio to one bare loop over them in the same Python.

python -m benchmarks.simulator
"""

from __future__ import annotations

from statistics import median
from time import perf_counter

from benchmarks.reporting.machine import machine
from heuristics.catalogue import HEURISTICS
from pipesched.files.problem_file import problem_from
from pipesched.schedule.schedule import Schedule
from pipesched.simulation.simulator import simulate


def bare_loop(schedule: Schedule) -> int:
    """The least any simulator in Python must do: look at every pass once and look it up in a dictionary."""
    ends: dict[object, int] = {}
    for clock, p in enumerate(schedule.passes()):
        ends[p] = clock
    return len(ends)


def main() -> None:
    """Print the table."""
    print(f"{machine(0, 1)}\n\n| schedule | passes | seconds (median of 5) | times a bare loop |\n|---|---|---|---|")
    times = {"forward": 1, "backward": 1, "weight": 1, "transfer": 1}
    for name, microbatches in (("1f1b", 1563), ("zb-h1", 1042)):
        problem = problem_from({"devices": 32, "microbatches": microbatches, "times": times}, "benchmark")
        schedule = HEURISTICS[name].order(problem)
        ratios, seconds = [], []
        for _ in range(5):
            started = perf_counter()
            passes = bare_loop(schedule)
            between = perf_counter()
            simulate(problem, schedule)
            seconds.append(perf_counter() - between)
            ratios.append(seconds[-1] / (between - started))
        print(f"| {name} | {passes} | {median(seconds):.2f} | {median(ratios):.1f} |")


if __name__ == "__main__":
    main()
