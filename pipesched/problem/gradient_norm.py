"""The norm of all gradients: one task of all devices that train, after all reductions and before all steps."""

from __future__ import annotations

from dataclasses import replace

from pipesched.problem.network.task_network import Resource
from pipesched.problem.passes import NORM
from pipesched.problem.problem import Problem
from pipesched.problem.quantities import StageId, Ticks
from pipesched.problem.stage import Once, TaskSpec


def with_norm(problem: Problem, stream: str, ticks: Ticks) -> Problem:
    """Return the problem with a task for all gradients' norm on `stream` of every device with a stage that trains.

    The task takes `ticks` and occupies all these streams at once; it is a pass of the first stage that trains, and
    replaces a norm that the problem had. There is none where no stage trains.
    """
    trained = problem.parameters.trained(problem.stages)
    if not trained:
        return without_norm(problem)
    first, *others = dict.fromkeys(problem.placement.stage_device[stage] for stage in trained)
    also = tuple(Resource(device, stream) for device in others)
    norm = Once(NORM, TaskSpec(stream, ticks, also=also), of_all=True)
    owner = next(stage for stage in trained if problem.placement.stage_device[stage] == first)
    return _with_once(problem, {owner: norm})


def without_norm(problem: Problem) -> Problem:
    """Return the problem without a norm of all gradients.

    Optimizer steps wait for the gradients of their own stage alone.
    """
    return _with_once(problem, {}) if norm_of(problem) else problem


def norm_of(problem: Problem) -> TaskSpec | None:
    """Return the task of the norm of all gradients; None where there is none.

    Where pipelines are joined, several stages have one; then it is the longest of them.
    """
    norms = (one.task for stage in problem.stages for one in stage.once if one.kind is NORM)
    return max(norms, key=lambda task: task.ticks, default=None)


def _with_once(problem: Problem, norms: dict[StageId, Once]) -> Problem:
    """Return the problem in which exactly the stages in `norms` run the norm given, between reduction and step."""
    kinds = [*type(NORM)]
    return replace(
        problem,
        stages=tuple(
            replace(
                stage,
                once=tuple(
                    sorted(
                        (*(one for one in stage.once if one.kind is not NORM), *([norms[s]] if s in norms else [])),
                        key=lambda one: kinds.index(one.kind),
                    )
                ),
            )
            for s, stage in enumerate(problem.stages)
        ),
    )
