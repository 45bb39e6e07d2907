"""Order literals of jobs: for two jobs of one resource, a Boolean `x runs before y`, fixed or decided by CP-SAT."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

from ortools.sat.python import cp_model

from formulations.tasks.jobs import Jobs
from formulations.tasks.known_order import KnownOrder
from formulations.variables.order_literals import Literal, Truth, negation


class JobOrder:
    """`before(x, y)` for jobs of one resource: known, or a literal, which means nothing unless both of them run."""

    def __init__(self, cp: cp_model.CpModel, jobs: Jobs, known: KnownOrder) -> None:
        self._known = known
        self.undecided = {
            (x, y): cp.new_bool_var(f"{jobs.jobs[x].task} before {jobs.jobs[y].task}")
            for here in jobs.on.values()
            for x, y in combinations(here, 2)
            if not (known.precedes(x, y) or known.precedes(y, x) or known.exclude(x, y))
        }

    def before(self, x: int, y: int) -> Truth:
        """Whether x runs before y; they may be the same job, which does not."""
        if (x, y) in self.undecided:
            return self.undecided[x, y]
        if (y, x) in self.undecided:
            return negation(self.undecided[y, x])
        return self._known.precedes(x, y)

    def consequences(self, jobs: Jobs) -> Iterator[tuple[Literal, Literal]]:
        """What x before y says of the same jobs of the next micro-batch: (if, then)."""
        following = dict(jobs.consecutive)
        for x, y in self.undecided:
            for one, other in ((x, y), (y, x)):
                literal = self.before(one, other)
                later = following.get(other)
                then = True if later is None else self.before(one, later)
                if not isinstance(literal, bool) and not isinstance(then, bool):
                    yield literal, then


def literal_count(jobs: Jobs, known: KnownOrder) -> int:
    """How many order literals these jobs need."""
    return sum(
        not (known.precedes(x, y) or known.precedes(y, x) or known.exclude(x, y))
        for here in jobs.on.values()
        for x, y in combinations(here, 2)
    )
