"""Tiny problems in span in which several devices may begin or end early, so that spans are often fractions of a
tick."""

from __future__ import annotations

from random import Random
from typing import Any

from pipesched.problem.problem import Problem
from tests.support.makers import problem

KINDS = ("lookups", "parameters", "weights", "two ways", "module")


def open_ends(random: Random, kind: str | None = None) -> Problem:
    """Return a problem of two devices and two micro-batches of a kind of `KINDS`, drawn if it is not given.

    One device mostly has short passes that the other waits for and, before or after them, something long of its own.
    """
    most = random.choice((4, 10, 20))

    def long_and_short() -> list[int]:
        return [random.randint(most // 2, most), random.randint(0, 2)]

    def by_itself() -> list[int]:
        return [random.choice((0, 0, random.randint(0, 3))), random.randint(most, 2 * most)]

    def some(stages: int) -> list[int]:
        return [random.randint(0, 5) for _ in range(stages)]

    transfer = [[0, random.randint(0, 3)], [random.randint(0, 3), 0]]
    kind = kind or random.choice(KINDS)
    keys: dict[str, Any] = {"objective": "span"}
    times: dict[str, Any] = {"forward": long_and_short(), "backward": long_and_short(), "transfer": transfer}
    if kind == "lookups":
        look = {"name": "look", "time": by_itself(), "needs": "nothing"}
        keys["tasks"] = {
            "forward": [look, {"name": "f", "time": times["forward"]}],
            "backward": [{"name": "b", "time": times["backward"]}],
        }
        times = {"transfer": transfer}
    elif kind == "parameters":
        parameters: dict[str, Any] = {"step": {"time": by_itself()}}
        if random.random() < 0.7:
            parameters["gather"] = {"time": by_itself(), "keep": "always"}
        if random.random() < 0.3:
            parameters["reduce"] = {"time": some(2), "buckets": random.choice((1, 2))}
        keys |= {"parameters": parameters, "objective": "iteration", "overlap_next": True}
    elif kind == "weights":
        times["weight"] = by_itself()
    elif kind == "two ways":
        weight = [random.randint(1, 5) for _ in range(4)]
        times = {"forward": random.randint(1, 5), "backward": random.randint(1, 5), "weight": weight}
        times["transfer"] = random.randint(0, 3)
        keys["placement"] = "bidirectional"
    else:
        own = {"forward": by_itself()[1], "backward": random.choice((0, by_itself()[1]))}
        keys["modules"] = {"vision": {"placement": [1], "feeds": 1, "times": own}}
    return problem(2, 2, times=times, **keys)
