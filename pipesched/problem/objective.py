"""The objectives: what is minimised of the starts and ends of the tasks of devices."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum


class Objective(StrEnum):
    """The quantity to minimise; defined in docs/concepts.md. Readers ask its properties, not which member it is."""

    MAKESPAN = "makespan"
    SPAN = "span"
    PERIOD = "period"
    ITERATION = "iteration"

    @property
    def by_device(self) -> bool:
        """The time of each device counts from the start of its own first task; else from time 0."""
        return self is Objective.SPAN

    @property
    def repeats(self) -> bool:
        """The time after which a schedule repeats counts; else the ends of one iteration."""
        return self is Objective.PERIOD

    @property
    def of_passes(self) -> Objective:
        """The objective of the passes of micro-batches alone, without what stages run for their parameters."""
        return Objective.MAKESPAN if self is Objective.ITERATION else self

    @property
    def with_article(self) -> str:
        """Its name with an article, for sentences."""
        return f"an {self.value}" if self is Objective.ITERATION else f"a {self.value}"

    def value_of(self, reach: Iterable[tuple[int, int]]) -> int:
        """The value of an iteration, from the first start and the last end of each device."""
        return max(end - (begin if self.by_device else 0) for begin, end in reach)
