"""verl's order of unequal micro-batches: the smallest first and last, valid wherever it applies."""

from __future__ import annotations

import pytest

from heuristics.catalogue import HEURISTICS
from pipesched import problem_from, simulate, validate
from pipesched.errors import DoesNotApply
from pipesched.problem.passes import F

TIMES = {"forward": 2, "backward": 3, "transfer": 1}


@pytest.mark.parametrize(
    ("name", "placement"),
    [("1f1b-small-ends", {}), ("interleaved-small-ends", {"placement": "interleaved", "chunks": 2})],
)
def test_small_ones_at_both_ends(name: str, placement: dict[str, object]) -> None:
    shape = {"devices": 2, "microbatches": 5, "times": TIMES, **placement}
    scale = {"microbatch_scale": [1, 0.5, 2, 1.5, 3]}
    problem = problem_from(shape | scale | {"microbatch_order": "free"})
    timeline = simulate(problem, HEURISTICS[name].order(problem))
    assert validate(timeline) == []
    entering = [p.microbatch for p in timeline.schedule.passes_on(0) if (p.kind, p.stage) == (F, 0)]
    # verl's code on the factors 3, 2, 1.5, 1, 0.5: every other one from the smallest up, the others down.
    assert [problem.walks.scale[j] for j in entering] == [0.5, 1.5, 3, 2, 1]
    for other in (shape, shape | scale):
        with pytest.raises(DoesNotApply):
            HEURISTICS[name].order(problem_from(other))
