"""Even cuts: as runtimes cut a model by default."""

from __future__ import annotations

from typing import Any

import pytest

from pipesched.files.plan_file import plan_problem_from
from pipesched.layers.even import even_counts


def model(**counts: int) -> Any:
    layers = [{"name": name, "count": count, "forward": 1, "backward": 2} for name, count in counts.items()]
    return plan_problem_from({"devices": 1, "microbatches": 1, "layers": layers}).model


@pytest.mark.parametrize(
    ("counts", "stages", "expected"),
    [
        # One dense layer before 45 with experts: 23 transformer layers a stage, as Megatron cuts them, not 1 + 23 and 22.
        ({"embedding": 1, "dense": 1, "moe": 45, "head": 1}, 2, (24, 24)),
        ({"embedding": 1, "layer": 8, "head": 1}, 4, (3, 2, 2, 3)),
        # Zero Bubble's 22 layers on 8 stages: embedding and head count as one each.
        ({"embedding": 1, "layer": 22, "head": 1}, 8, (3,) * 8),
        ({"embedding": 1, "layer": 9, "mtp": 1, "head": 1}, 4, (3, 3, 3, 3)),
        ({"embedding": 1, "layer": 9, "mtp": 1, "head": 1}, 3, (4, 3, 5)),
        ({"embedding": 1, "layer": 7, "head": 1}, 2, (5, 4)),
        ({"embedding": 1, "layer": 3, "head": 1}, 4, None),
        ({"embedding": 1, "head": 1}, 2, (1, 1)),
    ],
)
def test_layers_of_each_stage(counts: dict[str, int], stages: int, expected: tuple[int, ...] | None) -> None:
    assert even_counts(model(**counts), stages) == expected
