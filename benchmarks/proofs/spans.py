"""Spans of random tiny problems, solved and compared with every possible order, to the fraction of a tick.

The search over all orders (tests/support/exhaustive/) knows neither simulator nor solver. Each problem is solved by
one worker with a limit that counts work, so that counts are the same on every machine.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random

from pipesched.files.problem_file import problem_from
from pipesched.problem import placement
from pipesched.problem.problem import Objective, Problem
from pipesched.problem.rescale import in_ticks_of
from pipesched.results.solution import Status
from pipesched.validation.validator import validate
from solver.limits import Limits
from solver.solve import solve
from tests.support.exhaustive.optimum import least_value
from tests.support.tiny_problem import tiny_problem

LIMITS = Limits(seconds=600, workers=1, deterministic=3)
_SHAPES = (
    (placement.linear(2), 2, 3),
    (placement.linear(3), 1, 3),
    (placement.linear(4), 1, 2),
    (placement.bidirectional(2), 2, 3),
    (placement.v_shape(2), 1, 2),
    (placement.interleaved(2, 2), 1, 2),
    (placement.explicit(2, [1, 0]), 2, 3),
    (placement.explicit(3, [2, 0, 1, 0]), 1, 2),
)


def any_kind(random: Random) -> Problem:
    """Zeros, blocks, fused backwards that cost less or more, memory of every sign."""
    return replace(tiny_problem(random, _SHAPES), objective=Objective.SPAN)


def opposite_directions(random: Random) -> Problem:
    """A micro-batch in each direction over two devices: here fractions are most frequent."""
    backward, weight = random.randint(1, 5), [random.randint(0, 5) for _ in range(4)]
    times: dict[str, object] = {"forward": random.randint(1, 5), "backward": backward, "weight": weight}
    times["transfer"] = random.randint(0, 3)
    if random.random() < 0.3:
        times["fused"] = [max(0, backward + each - 1) for each in weight]
    document = {"devices": 2, "microbatches": 2, "placement": "bidirectional", "times": times, "objective": "span"}
    return problem_from(document, "two ways", "two ways")


def no_length(random: Random) -> Problem:
    """Most passes take no time, some transfers do, and memory is tight."""
    one = any_kind(random)
    names = ("forward", "backward", "weight", "fused") if one.splittable else ("forward", "fused")
    fewer = one.with_stages(
        **{name: [random.choice((0, getattr(stage, name))) for stage in one.stages] for name in names}
    )
    return fewer if one.splittable else fewer.with_stages(backward=[stage.fused for stage in fewer.stages])


_SORTS = any_kind, opposite_directions, no_length


def compare(number: int) -> tuple[str, ...]:
    """Faults of a solve of a problem, the sorts in turn, against the brute force."""
    one = _SORTS[number % len(_SORTS)](Random(number // len(_SORTS)))
    least = least_value(one, one.objective)
    if least is None:
        return ("nothing fits",)
    solution = solve(one, LIMITS)
    assert not solution.notes and solution.value_ticks is not None and solution.timeline is not None, solution.notes
    value = in_ticks_of(one, solution.value_ticks, solution.problem)
    bound = in_ticks_of(one, solution.lower_bound_ticks, solution.problem)
    optimal = solution.status is Status.OPTIMAL
    assert validate(solution.timeline) == []
    assert bound <= least <= value and (value == least or not optimal), (bound, least, value)
    outcomes = {"least span a fraction": least.denominator > 1, "proved optimal": optimal, "value lost": value > least}
    return "problems", *(name for name, seen in outcomes.items() if seen)
