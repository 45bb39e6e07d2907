"""Factors of unequal micro-batches: which ones a problem may have."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipesched.errors import BadInput

if TYPE_CHECKING:
    from pipesched.problem.problem import Problem


def refuse_scale(problem: Problem) -> None:
    """`BadInput` where the factors do not fit the problem, or leave a time or an activation no integer."""
    scale, parts = problem.microbatch_scale, problem.scale_parts
    if len(scale) != problem.microbatches:
        raise BadInput(f"microbatch_scale: found {len(scale)} values; allowed: {problem.microbatches}, one each")
    if min(scale) <= 0:
        raise BadInput(f"microbatch_scale: found {min(scale)}; allowed: numbers above 0")
    if problem.overlaps:
        raise BadInput("microbatch_scale: found with times.overlapped; allowed: one of them")
    if any(stage.saving_kinds for stage in problem.stages):
        raise BadInput("microbatch_scale: found with memory.offload or memory.recompute; allowed: one of them")
    if any(problem.links[a][b] != problem.links[b][a] for a, row in enumerate(problem.links) for b in range(len(row))):
        raise BadInput(
            "microbatch_scale: found with transfers of two times between two devices; allowed: one both ways"
        )
    times = [task.ticks for stage in problem.stages for kind in stage.kinds for task in stage.tasks_of(kind)]
    times += [stage.transfer for stage in problem.stages] + [lag for row in problem.links for lag in row]
    held = [number for stage in problem.stages for number in (stage.activation, stage.freed)]
    if any(number % parts for number in (*times, *held)):
        raise BadInput(
            f"microbatch_scale: found times or activations that are no multiples of {parts} ticks or steps; allowed: a "
            f"tick and a resolution finer by that factor"
        )
