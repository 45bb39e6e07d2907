"""Tiny problems whose micro-batches are several pieces, at random."""

from __future__ import annotations

from random import Random

from pipesched.problem.problem import Problem
from tests.support.makers import problem


def tiny_pieces(random: Random) -> Problem:
    """One to two devices, one micro-batch of two or three pieces, or two of two; memory from too little to ample."""
    devices, microbatches, count = random.randint(1, 2), random.randint(1, 2), random.randint(2, 3)
    count = 2 if microbatches == 2 else count
    split = microbatches == 1 and random.random() < 0.6

    def of_pieces(least: int, most: int) -> object:
        return [[random.randint(least, most) for _ in range(count)] for _ in range(devices)]

    times = {"forward": of_pieces(0, 4), "backward": of_pieces(1, 5), "transfer": random.randint(0, 2)}
    memory: dict[str, object] = {"activation": of_pieces(1, 2), "kept_for_later": random.choice((0, 0, 1))}
    if split:
        times["weight"] = of_pieces(0, 3)
        times["fused"] = [[b + random.randint(0, 3) for b in row] for row in times["backward"]]
        memory["freed_by_backward"] = random.choice((0, 1, -1))
    if random.random() < 0.8:
        memory["capacity"] = [random.randint(2 * count - 1, 4 * count) for _ in range(devices)]
    return problem(devices, microbatches, sequence_chunks=count, times=times, memory=memory)
