"""Half and a quarter of the memory: what offload, recomputation and both are worth.

`python -m benchmarks.memory_saving`: one pipeline, best known without a limit of memory; with less of it the search
under each of the options, and the published rules over 1F1B, for several lengths of a copy. The table goes into
`docs/memory-saving.md`.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from formulations.tasks.jobs_of_problem import jobs_of
from heuristics.building.memory_saving import full_offload, half_offload, uniform_recompute
from heuristics.one_f_one_b import one_f_one_b
from pipesched.files.problem_file import problem_from
from pipesched.problem.problem import Problem
from pipesched.results.solution import Solution
from pipesched.schedule.metrics import measure
from pipesched.schedule.schedule import Schedule
from pipesched.simulation.simulator import simulate
from pipesched.validation.validator import validate
from solver.limits import Limits
from solver.solve import solve
from solver.tasks.dispatch import expanded

DEVICES, MICROBATCHES, FORWARD, BACKWARD, WEIGHT, TRANSFER = 4, 8, 10, 10, 10, 1
# Copies in units of a forward, and memory in activations: half and a quarter of what 1F1B needs.
RATIOS = (0.25, 0.5, 1, 2, 4)
ROOMS = (2, 1)
PAGE = Path(__file__).parent.parent / "docs" / "memory-saving.md"

Rule = Callable[[Problem, Schedule], Schedule]


def problem(room: int | None, ratio: float | None, recompute: bool) -> Problem:
    """The pipeline with so much memory; copies of a length, or none; recomputation of everything, or none."""
    memory: dict[str, Any] = {} if room is None else {"capacity": room}
    if ratio is not None:
        memory["offload"] = {"out": ratio * FORWARD, "in": ratio * FORWARD}
    if recompute:
        memory["recompute"] = [{"name": "full", "time": FORWARD, "keeps": 0}]
    times = {"forward": FORWARD, "backward": BACKWARD, "weight": WEIGHT, "transfer": TRANSFER}
    return problem_from({"devices": DEVICES, "microbatches": MICROBATCHES, "times": times, "memory": memory})


def by_rule(one: Problem, rule: Rule) -> float | None:
    """The makespan of 1F1B under a rule, with the waits that memory needs; None where it does not fit."""
    jobs, best = jobs_of(one), list[int]()
    for schedule in expanded(jobs, rule(one, one_f_one_b(one))):
        timeline = simulate(one, schedule)
        if not validate(timeline):
            best.append(measure(timeline).makespan)
    return one.in_units(min(best)) if best else None


def rows(limits: Limits) -> Iterator[list[str]]:
    """A row for each length of a copy and memory."""
    for room in ROOMS:
        alone = _said(solve(problem(room, None, False), limits))
        again = problem(room, None, True)
        recomputed, uniform = _said(solve(again, limits)), by_rule(again, uniform_recompute)
        for ratio in RATIOS:
            copies = problem(room, ratio, False)
            offloaded, both = solve(copies, limits), solve(problem(room, ratio, True), limits)
            full, half = by_rule(copies, full_offload), by_rule(copies, half_offload)
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
    ample = solve(problem(None, None, False), limits)
    heads = [
        "memory",
        "copy / forward",
        "kept",
        "offload",
        "recompute",
        "both",
        "full offload",
        "half offload",
        "uniform",
    ]
    table = [heads, ["---"] * len(heads), *rows(limits)]
    text = "\n".join(f"| {' | '.join(row)} |" for row in table)
    page = f"{_OPENING.format(limit=args.seconds, workers=args.workers, ample=_said(ample))}\n{text}\n\n{_CLOSING}"
    PAGE.write_text(page, encoding="utf-8")


_OPENING = f"""# Offload and recomputation at half and a quarter of the memory

`python -m benchmarks.memory_saving`: {DEVICES} devices, {MICROBATCHES} micro-batches, F = {FORWARD}, B = {BACKWARD},
W = {WEIGHT}, transfer {TRANSFER}; makespan, {{limit:g}} s a solve with {{workers}} worker(s). Without a limit of
memory: {{ample}}. Memory is in activations of a stage; 1F1B needs {DEVICES}.
"""

_CLOSING = """A number alone is proved optimal; else the lower bound stands beside it. `kept`: every activation stays on
its device. `offload`: the search may copy activations out and back, on two streams a device. `recompute`: it may run
a forward again, of the same length, and keeps nothing until then. The last three are rules over 1F1B (PipeOffload's
full and half offload, Megatron's uniform recomputation), run as soon as memory lets them; – where no such order fits.
"""


if __name__ == "__main__":
    main()
