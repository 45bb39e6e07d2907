"""Predicted and measured steps of schedules that PyTorch runs, on stages that sleep: three processes on this machine.

    python -m benchmarks.executed
    python -m benchmarks.executed --attempts 10

A row is the best of all steps, since other work on the machine can only make one longer. Exit code 1 where one is five
per cent longer than predicted.
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from collections.abc import Sequence

from benchmarks.reporting.page import exit_code
from runtime.pytorch.run import measured_of
from runtime.running.torch_timing import predicted
from tests.support.run_jobs import UNIT, asleep, run_all

_MOST = 1.05


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the jobs, and print a line for each."""
    parser = ArgumentParser("python -m benchmarks.executed", description=__doc__)
    parser.add_argument("--attempts", type=int, default=3, help="runs of each; more while other programs run")
    args = parser.parse_args(arguments)
    planned, best = dict[str, float](), dict[str, float]()
    for _ in range(args.attempts):
        for name, (job, outcome) in run_all(list(asleep())).items():
            timeline = predicted(job.problem, job.schedule, job.split, transfers=False)
            planned[name] = UNIT * job.problem.in_units(max(map(timeline.end, job.schedule.passes())))
            best[name] = min([*measured_of(job, outcome).makespans, best.get(name, float("inf"))])
    for name, value in planned.items():
        print(f"{name:24} {1000 * value:6.0f} ms predicted, {1000 * best[name]:6.0f} ms measured")
    return int(any(best[name] > _MOST * value for name, value in planned.items()))


if __name__ == "__main__":
    sys.exit(exit_code(main))
