"""Tiny problems whose stages gather, reduce and step, at random: by themselves, and with each other thing that there is."""

from __future__ import annotations

from random import Random
from typing import Any

from pipesched.problem.problem import Problem
from pipesched.problem.stage import COMPUTE, Gather, TaskSpec
from tests.support.makers import problem
from tests.support.module_problems import tiny_modules
from tests.support.task_brute_force import (
    tiny_gathers,
    tiny_reductions,
    tiny_tasks,
    with_lookups,
    with_parameters,
)
from tests.support.tiny_memory import tiny_memory

# Devices, micro-batches and pieces of which every order can be tried.
_PIECES = ((1, 1, 2), (1, 2, 2), (1, 1, 3), (2, 1, 2))


def tiny_collectives(random: Random) -> Problem:
    """Return a problem with gatherings (a third of all), reductions and steps (a quarter), or these with another
    feature.

    The other feature is micro-batches in pieces, activation modes, lookups, or modules.
    """
    kind = random.random()
    if kind < 0.35:
        return tiny_gathers(random)
    if kind < 0.57:
        return tiny_reductions(random)
    if kind < 0.65:
        return _modules(random)
    if kind < 0.8:
        return _pieces(random)
    plain = tiny_memory(random) if kind < 0.92 else with_lookups(random, tiny_tasks(random))
    return with_parameters(random, plain)


def _modules(random: Random) -> Problem:
    """Return a problem whose stages, those of its modules too, reduce or step; half also gather, with more memory for
    it."""
    one = with_parameters(random, tiny_modules(random, few=True))
    if random.random() < 0.5:
        return one
    amounts = [random.randint(0, 2) for _ in one.stages]
    most = [random.choice((1, 1, 2)) if len(one.stages) < 3 else 1 for _ in one.stages]
    stream = random.choice((COMPUTE, "dp"))
    gather = [Gather(TaskSpec(stream, random.randint(0, 2)), own, n) for own, n in zip(amounts, most, strict=True)]
    some = [own if random.random() < 0.8 else None for own in gather]
    return one.with_stages(gather=some).with_room([room and room + random.randint(1, 4) for room in one.room])


def _pieces(random: Random) -> Problem:
    devices, microbatches, count = random.choice(_PIECES)

    def some(least: int, most: int) -> list[list[int]]:
        return [[random.randint(least, most) for _ in range(count)] for _ in range(devices)]

    def each(most: int) -> list[int]:
        return [random.randint(0, most) for _ in range(devices)]

    few = microbatches * count < 4
    parameters: dict[str, Any] = {"reduce": {"time": each(4)}} if random.random() < 0.7 else {}
    if random.random() < 0.5 or not parameters:
        parameters["step"] = {"time": each(2)}
    if few and random.random() < 0.6:
        most: dict[str, Any] = {} if random.random() < 0.5 else {"most": devices + 1}
        parameters["gather"] = {"time": each(2), "memory": each(2)} | (most or {"keep": "always"})
    memory: dict[str, Any] = {"activation": some(1, 2), "kept_for_later": random.choice((0, 0, 1))}
    if random.random() < 0.7:
        memory["capacity"] = [random.randint(2 * count, 5 * count) for _ in range(devices)]
    times = {"forward": some(0, 3), "backward": some(0, 3), "transfer": random.randint(0, 2) if devices > 1 else 0}
    return problem(
        devices, microbatches, sequence_chunks=count, times=times, memory=memory, parameters=parameters,
        objective="iteration", overlap_next=random.random() < 0.3,
    )  # fmt: skip
