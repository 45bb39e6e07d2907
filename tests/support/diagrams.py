"""Problems for decision diagrams: placements with two stages a device, little memory, blocks, bidirectional
placements."""

from __future__ import annotations

from dataclasses import replace

from pipesched.problem.features.device_resources import DeviceResources
from pipesched.problem.passes import F
from pipesched.problem.problem import Problem
from pipesched.problem.stage import TaskSpec
from tests.support.makers import problem

EVEN = {"forward": 10, "backward": 10, "weight": 10}
WHOLE = {"forward": 10, "backward": 20}
UNEVEN = {"forward": [9, 11, 10, 13], "backward": [10, 9, 11, 14], "weight": [11, 10, 9, 13], "transfer": 1}
LONGER = {"forward": [9, 11, 10, 13, 8, 12], "backward": [10, 9, 14, 11, 12, 10], "weight": [5, 11, 8, 13, 9, 10]}
BLOCKS, LONG = {"overlapped": 24}, {"overlapped": [20, 25, 26, 30, 23, 27]}
UNEVEN_BLOCKS = UNEVEN | {"overlapped": [23, 24, 22, 31]}
# Activations differ from stage to stage, and what each device always holds.
UNEVEN_MEMORY = {
    "memory": {
        "capacity": [7, 5],
        "static": [1.5, 0.5],
        "activation": [2, 1, 1.5, 3],
        "freed_by_backward": [0.5, 1, 0, 1],
    }
}
FREED = {"memory": {"capacity": 4, "freed_by_backward": 0.5}}


def v_shape(devices: int, microbatches: int, capacity: float, **keys: object) -> Problem:
    given: dict[str, object] = {"times": EVEN, "memory": {"capacity": capacity}, "objective": "span", **keys}
    return problem(devices, microbatches, **{"placement": "v-shape", **given})


def bidirectional(
    devices: int, microbatches: int, capacity: float, objective: str = "makespan", **keys: object
) -> Problem:
    given = {"times": EVEN | BLOCKS, "objective": objective, "placement": "bidirectional"}
    return v_shape(devices, microbatches, capacity, **given | keys)


def of_tasks(one: Problem) -> Problem:
    """Return the problem with forwards of two tasks, the second of which sends something on another stream.

    No problem file has that together with blocks.
    """
    parts = TaskSpec("compute", 10, "whole"), TaskSpec("comm", 1, "send")
    stages = tuple(replace(stage, tasks=((F, parts),)) for stage in one.stages)
    return replace(one, stages=stages, resources=DeviceResources(("compute", "comm")))
