"""A problem in finer ticks, for periods and spans that are fractions of a tick."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pipesched.problem.attainable_spans import Value, simplest
from pipesched.problem.problem import Problem, TaskSpec


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
                of: tuple(TaskSpec(part.stream, part.ticks * parts) for part in tasks)
                for of, tasks in costs.parts.items()
            },
        ),
        tick=problem.tick / parts,
    )


def in_ticks_of(problem: Problem, value: Value, of: Problem) -> Value:
    """A value in ticks of one problem as a value in those of another."""
    return value if problem.tick == of.tick else simplest(value * of.tick / problem.tick)
