"""The same problem in finer ticks: a period over several micro-batches may be a fraction of a tick."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pipesched.problem import Part, Problem


def finer(problem: Problem, parts: int) -> Problem:
    """Every tick becomes `parts` ticks; times in the file's unit stay what they are."""

    def scaled(ticks: Sequence[int]) -> tuple[int, ...]:
        return tuple(tick * parts for tick in ticks)

    if parts == 1:
        return problem
    costs = problem.costs
    return replace(
        problem,
        costs=replace(
            costs,
            forward=scaled(costs.forward),
            backward=scaled(costs.backward),
            weight=None if costs.weight is None else scaled(costs.weight),
            fused=scaled(costs.fused),
            transfer=scaled(costs.transfer),
            overlapped=None if costs.overlapped is None else scaled(costs.overlapped),
            parts={
                of: tuple(Part(part.stream, part.ticks * parts) for part in tasks) for of, tasks in costs.parts.items()
            },
        ),
        tick=problem.tick / parts,
    )
