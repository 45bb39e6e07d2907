"""Vocab-1F1B: valid on every pipeline with the output layer on all devices, and as its closed form says."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from heuristics.catalogue import HEURISTICS
from pipesched.errors import DoesNotApply
from pipesched.files.problem_file import problem_from
from pipesched.problem.problem import Problem
from tests.support.makers import measured

VOCABULARY = HEURISTICS["vocab-1f1b"]


def drawn(random: Random, p: int, **changes: Any) -> Problem:
    """A pipeline of p devices with a part of the head on each, half of the time with parts of an embedding, too."""
    forward, transfer = random.randint(1, 4), random.choice((0, 0, 0.5))
    times = {"forward": forward, "backward": random.randint(forward, 3 * forward), "transfer": transfer}
    parts = {"forward": random.randint(0, 4), "backward": random.randint(0, 4), "transfer": transfer}
    head = {"placement": "shared", "follows": p - 1, "barriers": random.choice((1, 2)), "times": parts}
    modules = {"head": head | {"memory": {"activation": 0.5}}}
    if random.random() < 0.5:
        modules["embedding"] = {"placement": "shared", "feeds": 0, "times": parts}
    document = {"devices": p, "microbatches": random.randint(1, 3 * p + 2), "times": times, "modules": modules}
    return problem_from(document | {"memory": {"activation": 2}} | changes)


@pytest.mark.parametrize("p", (1, 2, 3, 4, 7))
def test_valid_and_as_its_closed_form_says(p: int) -> None:
    random, timed = Random(p), 0
    for _ in range(25):
        problem = drawn(random, p)
        form, found = VOCABULARY.closed_form(problem), measured(problem, VOCABULARY.order(problem))
        assert (form is None) == (len(problem.chain_arcs.modules) == 2)
        if form is not None:
            assert form.peak == found.peak_quanta
            assert form.makespan in (None, found.makespan_ticks)
            timed += form.makespan is not None
    assert timed > 2


def test_the_bubble_is_that_of_1f1b_however_large_the_vocabulary() -> None:
    for size in (1, 4, 40):
        head = {"placement": "shared", "follows": 3, "times": {"forward": size, "backward": size}}
        for barriers, most in ((1, 5), (2, 6)):
            modules = {"head": head | {"barriers": barriers, "memory": {"activation": 0}}}
            problem = problem_from(
                {"devices": 4, "microbatches": 8, "times": {"forward": 1, "backward": 2}, "modules": modules}
                | {"memory": {"activation": 1}}
            )
            found = measured(problem, VOCABULARY.order(problem))
            assert found.makespan_ticks * problem.tick == 8 * (3 + 2 * size) + 3 * 3
            assert found.peak_quanta[0] * problem.resolution == most


def test_what_it_is_not_for() -> None:
    random = Random(0)
    for text, changes in (
        ("output layer of shared placement", {"modules": {"vision": {"feeds": 0, "times": {"forward": 1, "backward": 1}}}}),
        ("one stage on each device", {"placement": "interleaved", "chunks": 2, "times": {"forward": 1, "backward": 2}}),
        ("backwards no shorter", {"times": {"forward": 2, "backward": 1}}),
    ):  # fmt: skip
        with pytest.raises(DoesNotApply, match=text):
            VOCABULARY.order(drawn(random, 2, **changes))
