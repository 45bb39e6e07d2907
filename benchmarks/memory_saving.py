"""Half and a quarter of the memory: what offload, recomputation and both are worth, by the length of a copy.

python -m benchmarks.memory_saving --write docs/results/memory-saving.md
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

from benchmarks.reporting.suite import Case, Suite
from pipesched.files.problem_file import problem_from
from pipesched.problem.problem import Problem

# Copies in units of a forward, and memory in activations: half and a quarter of what 1F1B needs.
RATIOS, ROOMS, FORWARD = (0.25, 0.5, 1, 2, 4), (2, 1), 10


def problem(room: int | None, ratio: float | None, recompute: bool) -> Problem:
    """The pipeline with so much memory; copies of a length, or none; recomputation of everything, or none."""
    memory: dict[str, Any] = {} if room is None else {"capacity": room}
    if ratio is not None:
        memory["offload"] = {"out": ratio * FORWARD, "in": ratio * FORWARD}
    if recompute:
        memory["recompute"] = [{"name": "full", "time": FORWARD, "keeps": 0}]
    modes = ["offload"] * (ratio is not None) + ["recompute"] * recompute
    name = f"memory {room}, {' and '.join(modes) or 'kept'}" + ("" if ratio is None else f", copy {ratio:g} forwards")
    times = {"forward": FORWARD, "backward": 10, "weight": 10, "transfer": 1}
    return problem_from({"name": name, "devices": 4, "microbatches": 8, "times": times, "memory": memory})


def cases(_: int) -> Iterator[Case]:
    """Without a limit, then each memory with each mode and length."""
    yield Case(problem(None, None, False), "no limit")
    for room in ROOMS:
        for ratio, again in (
            (None, False),
            (None, True),
            *((ratio, recompute) for recompute in (False, True) for ratio in RATIOS),
        ):
            yield Case(problem(room, ratio, again), f"memory {room}")


SUITE = Suite("memory_saving", __doc__, {"saving": cases}, seconds=15, every=True)

if __name__ == "__main__":
    sys.exit(SUITE.main())
