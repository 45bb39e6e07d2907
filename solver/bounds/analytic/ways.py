"""Ways: the least time from the beginning of a device, or of time, to another device, and from there to its end.

Both are part of the span of any device that the micro-batches pass before, so one device's work bounds another's span.
For the makespan the ways are from time 0, and back to the first stage.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from pipesched.problem.problem import Objective, Problem
from solver.bounds.analytic.critical_paths import Paths, gate_of


class Ways(NamedTuple):
    """Least ticks from the beginning of a device to another, and back, by the other's chains.

    `whose` is the device that begins and ends; None for time itself.
    """

    whose: int | None
    heads: list[int]
    back: list[int]

    @property
    def there(self) -> int:
        """To the other device by the shortest way."""
        return min(self.heads)


def ways(problem: Problem, paths: Paths, objective: Objective, first: Sequence[int]) -> Iterator[Ways]:
    """All ways to and from a device on which the chains walk these stages first."""
    if objective is Objective.MAKESPAN:
        yield Ways(None, [paths.head[s] for s in first], [paths.tail(s) for s in first])
        return
    for whose in range(problem.devices):
        # The other device is sure to begin before, and to end behind, if every chain passes it first.
        gates = [gate for s in first for gate in [gate_of(problem, whose, s)] if gate is not None]
        if len(gates) == len(first):
            heads = [paths.head[s] - paths.head[gate] for s, gate in zip(first, gates, strict=True)]
            yield Ways(whose, heads, [paths.way_back(s, gate) for s, gate in zip(first, gates, strict=True)])
