"""Tiny problems whose backwards of several tasks run as B and W at once, and reduce their gradients in buckets."""

from __future__ import annotations

from random import Random
from typing import Any

from pipesched.problem.problem import Problem
from tests.support.makers import problem


def bucket_problem(random: Random) -> Problem:
    """Return a problem of one or two devices, with up to three tasks of B, each with or without a W task.

    Gradients are reduced in 1 to 3 buckets, with optimizer steps by chance; the objective is the iteration or its span.
    """
    devices, microbatches = random.choice(((1, 1), (1, 1), (1, 2), (2, 1)))
    parts = random.randint(1, 2 if devices * microbatches > 1 else 3)

    def some(least: int = 0, most: int = 4) -> list[int]:
        return [random.randint(least, most) for _ in range(devices)]

    tasks: dict[str, Any] = {
        "forward": [{"name": "f", "time": some(1)}],
        "backward": [{"name": f"x{n}", "time": some()} for n in range(parts)],
    }
    with_weight = [n for n in range(parts) if random.random() < 0.8] or [parts - 1]
    tasks["weight"] = [{"name": f"w{n}", "time": some(), "after": f"x{n}"} for n in with_weight]
    if random.random() < 0.3:
        random.shuffle(tasks["weight"])
    on = random.choice(({}, {"on": "dp"}))
    parameters: dict[str, Any] = {"reduce": {"time": some(0, 6), "buckets": random.choice((1, 2, 2, 3))} | on}
    if random.random() < 0.4:
        parameters["step"] = {"time": some(0, 2)}
    times = {"transfer": random.randint(0, 2)} if devices > 1 else {}
    return problem(
        devices, microbatches, streams=["compute", "dp"], tasks=tasks, times=times, parameters=parameters,
        objective="iteration", overlap_next=random.random() < 0.3,
    )  # fmt: skip
