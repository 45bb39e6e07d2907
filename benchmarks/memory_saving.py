"""Half and a quarter of the memory: what offload, recomputation and both are worth.

`python -m benchmarks.memory_saving`: one pipeline, best known without a limit of memory; with less of it the search
under each of the options, and the published schedules of each option, for several lengths of a copy. The table goes
into `docs/results/memory-saving.md`.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from os import getloadavg
from pathlib import Path
from typing import Any

from benchmarks.reporting.machine import machine
from heuristics.catalogue import HEURISTICS
from pipesched.files.atomic_write import write_whole
from pipesched.files.problem_file import problem_from
from pipesched.problem.problem import Problem
from pipesched.results.solution import Solution
from solver.limits import Limits
from solver.published import candidate
from solver.solve import solve

DEVICES, MICROBATCHES, FORWARD, BACKWARD, WEIGHT, TRANSFER = 4, 8, 10, 10, 10, 1
# Copies in units of a forward, and memory in activations: half and a quarter of what 1F1B needs.
RATIOS = (0.25, 0.5, 1, 2, 4)
ROOMS = (2, 1)
PAGE = Path(__file__).parent.parent / "docs" / "results" / "memory-saving.md"


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
    return one.in_units(found.metrics.makespan) if found.fits and found.metrics is not None else None


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


def main() -> None:
    """Solve, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=15.0, help="of each solve")
    parser.add_argument("--workers", type=int, default=1)
    args = parser.parse_args()
    limits = Limits(seconds=args.seconds, workers=args.workers)
    begun = getloadavg()[0]
    ample = solve(problem(None, None, False), limits)
    heads = [
        "memory",
        "copy / forward",
        "kept",
        "offload",
        "recompute",
        "both",
        "pipeoffload-full",
        "pipeoffload-half",
        "uniform-recompute",
    ]
    table = [heads, ["---"] * len(heads), *rows(limits)]
    text = "\n".join(f"| {' | '.join(row)} |" for row in table)
    load = ", ".join(f"{each:.0f}" for each in (begun, getloadavg()[0]))
    opening = _OPENING.format(limit=args.seconds, ample=_said(ample), machine=machine(0, args.workers), load=load)
    write_whole(PAGE, f"{opening}\n{text}\n\n{_CLOSING}")


_OPENING = f"""# Offload and recomputation at half and a quarter of the memory

`python -m benchmarks.memory_saving`: {DEVICES} devices, {MICROBATCHES} micro-batches, F = {FORWARD}, B = {BACKWARD},
W = {WEIGHT}, transfer {TRANSFER}; makespan, {{limit:g}} s a solve. Without a limit of memory: {{ample}}.
Memory is in activations of a stage; 1F1B needs {DEVICES}.

{{machine}}; load of the machine at the beginning and at the end: {{load}}.
"""

_CLOSING = """A number alone is proved optimal; else the lower bound stands beside it. `kept`: every activation stays on
its device. `offload`: the search may copy activations out and back, on two streams a device. `recompute`: it may run
a forward again, of the same length, and keeps nothing until then. The last three are published schedules over 1F1B;
– where no such order fits.

No copy, however fast, gives the time without a limit: between B and W an activation stays on its device. With room for
two, two weight passes at most can come after the last gradient of the last device, so that the gradient ends at 253
and the way back to the first device takes until 296. With room for one, a device that is neither first nor last holds
one activation at a time, from its forward to the end of the copy out and from the copy back to the end of W.
"""


if __name__ == "__main__":
    main()
