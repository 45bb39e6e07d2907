"""Argument: a stream of a device runs all its tasks, one at a time."""

from __future__ import annotations

from pipesched.checking.finding import RefusedEvidenceError
from pipesched.problem.passes import BW, B, F, PassKind, W
from pipesched.problem.problem import Problem
from pipesched.problem.quantities import StageId, Ticks
from pipesched.results.evidence import OnStream

# Quantities of a problem that only add tasks, or waits between them.
HARMLESS = frozenset({"tasks", "transfer_stream", "offload", "recompute", "may_keep", "hosts", "shared_streams"})


def stream_load(problem: Problem, evidence: OnStream) -> Ticks:
    """Return the ticks of all tasks on a stream of all micro-batches, each backward in the mode that uses it less.

    Raises `RefusedEvidenceError` for a device that does not exist, or if passes may run in blocks.
    """
    if not 0 <= evidence.device < problem.devices:
        raise RefusedEvidenceError(f"there is no device {evidence.device}")
    if problem.overlaps:
        raise RefusedEvidenceError("passes that run as one block take less of a stream than in turn")
    total = 0
    everywhere = any(task.also for stage in problem.stages for _, tasks in stage.tasks for task in tasks)
    own = problem.placement.stages_of[evidence.device]
    for number in range(problem.placement.stages) if everywhere else own:
        stage = problem.stages[number]
        split = _ticks(problem, number, evidence, B, W) if stage.weight is not None else None
        fused = _ticks(problem, number, evidence, BW)
        backward = fused if split is None else min(fused, split)
        total += (_ticks(problem, number, evidence, F) + backward) * len(problem.microbatches_of[number])
    return total


def _ticks(problem: Problem, stage: StageId, evidence: OnStream, *kinds: PassKind) -> Ticks:
    """Return the ticks in which one micro-batch's passes of these kinds on a stage occupy the evidence's stream."""
    tasks = (task for kind in kinds for task in problem.stages[stage].tasks_of(kind))
    own, where = problem.placement.stage_device[stage] == evidence.device, (evidence.device, evidence.stream)
    return sum(task.ticks for task in tasks if (own and task.stream == evidence.stream) or where in task.also)
