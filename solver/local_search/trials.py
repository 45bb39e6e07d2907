"""Short runs from one start that know nothing of each other: after each round of them the better half goes on.

Annealing with open modes settles in what it meets in its first moves, and runs from there gain little; runs with other
random numbers end elsewhere. So several are begun before one is gone on from (successive halving: Jamieson and
Talwalkar, AISTATS 2016).
"""

from __future__ import annotations

from pipesched.schedule.timeline import Timeline
from solver.local_search.pool import Member, length

# How many runs begin, how many rounds there are, and the moves of each run for each unit: at least and at most.
RUNS, ROUNDS, LEAST_MOVES, MOST_MOVES = 12, 3, 80, 200


class Trials:
    """Each run of a round is given out once; the next round begins when this one is `settled`."""

    def __init__(self, start: Timeline, moves: int) -> None:
        self.moves = moves  # of a run in a round
        self.members = [Member(start, length(start)) for _ in range(RUNS)]
        self.round = 0
        self._open = list(self.members)

    @staticmethod
    def within(moves: int, start: Timeline, units: int) -> Trials | None:
        """From a schedule of so many units, with no more moves together; None where they would be too short."""
        each = moves // sum(RUNS >> number for number in range(ROUNDS))
        return Trials(start, min(each, MOST_MOVES * units)) if each >= LEAST_MOVES * units else None

    @property
    def over(self) -> bool:
        return self.round == ROUNDS

    def next(self) -> Member | None:
        """Whose turn it is in this round; None once all have had theirs."""
        return self._open.pop() if self._open else None

    def settled(self) -> None:
        """Every run given out has ended. Where none is left in this round, the better half begins the next one."""
        if self._open or self.over:
            return
        self.round += 1
        self.members.sort(key=lambda one: one.value)
        if not self.over:
            self._open = self.members[: RUNS >> self.round]
