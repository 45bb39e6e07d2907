"""Spans of random tiny problems, solved and compared with every possible order, to the fraction of a tick.

    python -m benchmarks.proofs.spans                 150 problems of every sort, as a Markdown table
    python -m benchmarks.proofs.spans --problems 3000 --first 1000 --sorts "two ways" --write docs/results/spans.md

The brute force (tests/support/exact_span.py) knows neither simulator nor solver. Each problem is solved by one worker
with a limit that counts work, so that the table is the same on every machine. Exits with 1 if anything wrong was said.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random

from benchmarks.reporting.page import show, table
from pipesched.files.problem_file import problem_from
from pipesched.problem import placement
from pipesched.problem.problem import Objective, Problem
from pipesched.problem.rescale import in_ticks_of
from pipesched.results.solution import Status
from pipesched.validation.validator import validate
from solver.limits import Limits
from solver.solve import solve
from tests.support.brute_force import tiny_problem
from tests.support.exact_span import least_span

LIMITS = Limits(seconds=600, workers=1, deterministic=3)
HEAD = (
    "problems",
    "solved",
    "least span a fraction",
    "proved optimal",
    "value lost",
    "claimed wrongly",
    "defects told",
)
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


def two_ways(random: Random) -> Problem:
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


SORTS: dict[str, Callable[[Random], Problem]] = {"any": any_kind, "two ways": two_ways, "no length": no_length}


def compare(one: Problem) -> Counter[str]:
    """What a solve says of a problem, against the brute force."""
    least = least_span(one)
    if least is None:
        return Counter()
    found: Counter[str] = Counter(solved=1)
    found["least span a fraction"] = int(least.denominator > 1)
    solution = solve(one, LIMITS)
    found["defects told"] = int(bool(solution.notes))
    assert solution.value_ticks is not None
    assert solution.timeline is not None
    value = in_ticks_of(one, solution.value_ticks, solution.problem)
    bound = in_ticks_of(one, solution.lower_bound_ticks, solution.problem)
    optimal = solution.status is Status.OPTIMAL
    wrong = bool(validate(solution.timeline)) or bound > least or value < least or (optimal and value != least)
    found["proved optimal"], found["value lost"] = int(optimal), int(value > least)
    found["claimed wrongly"] = int(wrong)
    return found


def rows(sorts: Sequence[str], first: int, problems: int) -> list[list[str]]:
    """A row for each sort of problem."""
    made = []
    for sort in sorts:
        total: Counter[str] = Counter()
        for seed in range(first, first + problems):
            total += compare(SORTS[sort](Random(seed)))
        made.append([f"{problems} {sort}", *(str(total[name]) for name in HEAD[1:])])
    return made


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the comparison, print or write its table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--problems", type=int, default=150, help="of each sort (default: 150)")
    parser.add_argument("--first", type=int, default=0, help="the first seed (default: 0)")
    parser.add_argument("--sorts", nargs="+", choices=sorted(SORTS), default=sorted(SORTS))
    parser.add_argument("--write", type=Path, help="write the table into this page")
    args = parser.parse_args(arguments)
    made = rows(args.sorts, args.first, args.problems)
    text = table(HEAD, made)
    show(args.write, "python -m benchmarks.proofs.spans", text)
    return int(any(row[HEAD.index("claimed wrongly")] != "0" for row in made))


if __name__ == "__main__":
    sys.exit(main())
