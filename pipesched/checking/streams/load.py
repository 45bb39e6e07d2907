"""Argument: a stream of a device runs all its tasks, one at a time."""

from __future__ import annotations

from pipesched.checking.finding import RefusedEvidenceError
from pipesched.problem.passes import BW, B, F, PassKind, W
from pipesched.problem.problem import Problem
from pipesched.results.evidence import OnStream

# Quantities of a problem that only add tasks, or waits between them.
HARMLESS = frozenset(
    {"tasks", "transfer_stream", "offload", "recompute", "may_keep", "hosts", "shared_streams", "rendezvous"}
)


def stream_load(problem: Problem, evidence: OnStream) -> int:
    """Return the ticks of all tasks on a stream, each backward in the mode that uses the stream less."""
    if not 0 <= evidence.device < problem.devices:
        raise RefusedEvidenceError(f"there is no device {evidence.device}")
    if problem.overlaps:
        raise RefusedEvidenceError("passes that run as one block take less of a stream than in turn")
    total = 0
    for number in problem.placement.stages_of[evidence.device]:
        split = _ticks(problem, number, evidence.stream, B, W) if problem.stages[number].weight is not None else None
        fused = _ticks(problem, number, evidence.stream, BW)
        backward = fused if split is None else min(fused, split)
        forward = _ticks(problem, number, evidence.stream, F)
        sent = _sent(problem, number, evidence.stream) if problem.resources.rendezvous else 0
        total += (forward + backward + sent) * len(problem.microbatches_of[number])
    return total


def _sent(problem: Problem, stage: int, stream: str) -> int:
    """The ticks in which a stage sends its activation and its gradient; receipts are tasks of the passes."""
    to = problem.placement.next[stage], problem.placement.previous[stage]
    ticks = sum(problem.lag(stage, other) for other in to if other is not None)
    return ticks if problem.resources.transfer_stream == stream else 0


def _ticks(problem: Problem, stage: int, stream: str, *kinds: PassKind) -> int:
    tasks = (task for kind in kinds for task in problem.stages[stage].tasks_of(kind))
    return sum(task.ticks for task in tasks if task.stream == stream)
