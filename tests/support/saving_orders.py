"""Orders with copies to the host and recomputation, for the executors that run them."""

from __future__ import annotations

from typing import Any

from heuristics.catalogue import schedule_named
from pipesched.schedule.timeline import Timeline
from pipesched.simulation.simulator import simulate
from tests.support.makers import problem, schedule

MEMORY: dict[str, Any] = {
    "activation": 4,
    "offload": {"out": 1, "in": 1, "on": ["d2h", "h2d"]},
    "recompute": [{"name": "full", "time": 2, "keeps": 1}],
    "decide": {"offload": "free", "recompute": "free"},
}


def named(name: str, devices: int, microbatches: int, **keys: Any) -> Timeline:
    one = problem(devices, microbatches, **keys)
    return simulate(one, schedule_named(name).order(one))


def mixed() -> Timeline:
    """Return a timeline with offload, recomputation and neither, on both stages, with full and split backwards."""
    order = schedule(
        "F0.0 O0.0 F0.1 F0.2 L0.0 B0.0 W0.0 R0.1 B0.1 F0.3 W0.1 B0.2 W0.2 BW0.3",
        "F1.0 B1.0 F1.1 O1.1 W1.0 F1.2 L1.1 B1.1 W1.1 R1.2 BW1.2 F1.3 BW1.3",
    )
    return simulate(problem(2, 4, memory=MEMORY), order)


def in_a_v() -> Timeline:
    order = schedule(
        "F0.0 F0.1 O0.1 F3.0 B3.0 W3.0 F3.1 R3.1 B3.1 W3.1 L0.1 R0.0 BW0.0 BW0.1 F0.2 F0.3 F3.2 BW3.2 F3.3 BW3.3 BW0.2 BW0.3",
        "F1.0 F2.0 F1.1 F2.1 B2.0 B1.0 W2.0 W1.0 R2.1 BW2.1 BW1.1 F1.2 F2.2 F1.3 F2.3 BW2.2 BW1.2 BW2.3 BW1.3",
    )
    return simulate(problem(2, 4, placement="v-shape", memory=MEMORY), order)


RECOMPUTED = MEMORY | {"decide": {"recompute": "always", "offload": "never"}}
LOOP = {"placement": "interleaved", "chunks": 2}
TIMELINES = {
    "mixed": mixed(),
    "offloaded": named("pipeoffload-full", 4, 4, memory=MEMORY),
    "on a loop": named("pipeoffload-full", 2, 4, memory=MEMORY, **LOOP),
    "in a V": in_a_v(),
    "recomputed": named("uniform-recompute", 4, 4, memory=RECOMPUTED),
}
