"""Pool of schedules from which local search continues besides the incumbent, each as long as runs improve it.

A schedule that does not improve is replaced by the result of strong annealing from a copy of the best.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pipesched.schedule.metrics import measure
from pipesched.schedule.timeline import Timeline
from solver.parameters import tunable, tuned


@dataclass(frozen=True)
@tunable
class PoolParams:
    """Size of the pool, and the number of runs without gain after which one of its schedules is replaced.

    These are `size` and `patience`.
    """

    size: int = tuned(6, "schedules", 1, 100)
    patience: int = tuned(3, "runs without gain, after which a schedule is left", 1, 100)


POOL = PoolParams()


@dataclass
class Member:
    """A schedule of the pool, its value in the file's unit, and the number of runs from it without gain (`stale`)."""

    timeline: Timeline
    value: float
    stale: int = 0

    @property
    def stuck(self) -> bool:
        return self.stale >= POOL.patience

    def became(self, timeline: Timeline | None) -> None:
        """Take the result of a run from here if it is better, or, after `POOL.patience` runs without gain, any result.

        Then `stale` is 0; else it grows by 1, as always where `timeline` is None: the run gave no schedule.
        """
        if timeline is not None and (self.stuck or length(timeline) < self.value):
            self.timeline, self.value, self.stale = timeline, length(timeline), 0
        else:
            self.stale += 1


class Pool:
    """Schedules (`members`) from which runs of local search start in turn: `others`, filled up with `best`.

    There are `POOL.size` of them; of more `others` the first ones are taken.
    """

    def __init__(self, best: Timeline, others: Sequence[Timeline]) -> None:
        given = [*others, *[best] * POOL.size][: POOL.size]
        self.members = [Member(one, length(one)) for one in given]

    def member(self, number: int, best: Timeline) -> Member:
        """Return the member for run `number`, counted from 0 over all members in turn.

        If its last runs brought no gain (`stuck`), its schedule is set to the timeline `best`, for strong annealing.
        """
        one = self.members[number % POOL.size]
        if one.stuck:
            one.timeline, one.value = best, length(best)
        return one


def length(timeline: Timeline) -> float:
    """Return the objective value of a timeline in units of the file, since ticks of timelines may differ."""
    problem = timeline.problem
    return problem.in_units(measure(timeline).value_ticks(problem.objective))
