"""Random problems of every kind a user may have: what the engine finds and proves on each.

    python -m benchmarks.random --seed 8 --seconds 60 --write docs/results/random.md
    python -m benchmarks.random --suite tasks --seed 9 --write docs/results/random.md
    python -m benchmarks.random --suite fixed --write docs/results/random.md

A seed draws a fresh suite: a table should be of one that nobody looked at while the engine was changed. `--suite fixed`
is the 41 problems with which tables of different versions are compared. Results are kept in a file after every problem;
--resume runs only those that are not there yet, and none at all if they all are.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence

from benchmarks.cases.drawn_problems import drawn_problems
from benchmarks.cases.drawn_tasks import drawn_tasks
from benchmarks.cases.random_problems import random_problems
from benchmarks.reporting.suite import Case, Suite
from pipesched.problem.problem import Problem


def kind_of(problem: Problem) -> str:
    """The placement as the name says it, and whether passes may overlap in blocks."""
    words = problem.name.partition(" p=")[0].split(" ", 1)
    placement = words[-1] if words[0].replace("-", "").isdigit() else " ".join(words)
    return placement.partition(",")[0] + (", blocks" if problem.overlaps else "")


def _of(problems: Callable[[int], Sequence[Problem]]) -> Callable[[int], Iterator[Case]]:
    return lambda seed: (Case(problem, kind_of(problem)) for problem in problems(seed))


SUITES = {"drawn": _of(drawn_problems), "tasks": _of(drawn_tasks), "fixed": _of(lambda _: random_problems())}
SUITE = Suite("random", __doc__, SUITES)

if __name__ == "__main__":
    sys.exit(SUITE.main())
