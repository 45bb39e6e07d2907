"""The objectives: values of a schedule to minimise, computed from the starts and ends of tasks."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum


class Objective(StrEnum):
    """The quantity to minimise, defined in docs/concepts.md. Code should ask its properties, not compare members."""

    MAKESPAN = "makespan"
    SPAN = "span"
    PERIOD = "period"
    ITERATION = "iteration"

    @property
    def by_device(self) -> bool:
        """True if each device's time counts from the start of its own first task (span), False if from time 0."""
        return self is Objective.SPAN

    @property
    def repeats(self) -> bool:
        """True if the value is the time after which the schedule repeats (period), False if it is an end of one
        iteration."""
        return self is Objective.PERIOD

    @property
    def of_passes(self) -> Objective:
        """The objective of the problem without passes for parameters: makespan instead of iteration, else the same."""
        return Objective.MAKESPAN if self is Objective.ITERATION else self

    @property
    def with_article(self) -> str:
        """The name of the objective with an article, for sentences."""
        return f"an {self.value}" if self is Objective.ITERATION else f"a {self.value}"

    def value_of(self, reach: Iterable[tuple[int, int]]) -> int:
        """Return the value of an iteration, in ticks, from (first start, last end) of each device."""
        return max(end - (begin if self.by_device else 0) for begin, end in reach)
