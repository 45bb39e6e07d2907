"""Argument: the least way to a stream's first task, all its tasks one at a time, and the least way from its last."""

from __future__ import annotations

from pipesched.checking.finding import RefusedEvidenceError
from pipesched.checking.streams.task_paths import Node, TaskPaths
from pipesched.checking.streams.tasks import require_owner
from pipesched.problem.passes import BW, F
from pipesched.problem.problem import Problem
from pipesched.results.evidence import AroundStream

KNOWN = frozenset({"tasks", "transfer_stream"})


def stream_head_and_tail(problem: Problem, evidence: AroundStream) -> int:
    """All of it is part of the makespan, or of the owner's span: every way begins and ends at a task of the owner."""
    stream, owner = (evidence.device, evidence.stream), evidence.owner
    require_owner(problem, owner)
    if any(stage.overlapped is not None for stage in problem.stages):
        raise RefusedEvidenceError("passes that run as one block take less of a stream than in turn")
    work, always, ways = 0, False, list[tuple[int | None, int | None]]()
    for chain in problem.placement.chains:
        count = len(problem.microbatches_of[chain[0]])
        if not count:
            continue
        paths = TaskPaths(problem, chain)
        heads, tails = paths.heads(owner), paths.tails(owner)
        for stage in chain:
            here = [node for node, where in paths.where.items() if where == stream and node.stage == stage]
            ways += [(heads[node], tails[node]) for node in here]
            work += count * _least(paths, here)
            always = always or _always(here, paths.splits)
    if not always:
        raise RefusedEvidenceError(f"nothing is sure to run on stream {evidence.stream} of device {evidence.device}")
    to = [head for head, _ in ways if head is not None]
    back = [tail for _, tail in ways if tail is not None]
    if len(to) < len(ways) or len(back) < len(ways):
        raise RefusedEvidenceError(f"a task of the stream may run outside of the span of device {owner}")
    return min(to) + work + min(back)


def _least(paths: TaskPaths, here: list[Node]) -> int:
    """The ticks of these tasks of one stage: the forward's, and of the backward's modes the lesser."""
    forward = sum(paths.ticks[node] for node in here if node.kind is F)
    fused = sum(paths.ticks[node] for node in here if node.kind is BW)
    split = sum(paths.ticks[node] for node in here if node.kind not in (F, BW))
    return forward + (min(fused, split) if paths.splits else fused)


def _always(here: list[Node], splits: bool) -> bool:
    """Whether one of them runs in either mode."""
    kinds = {node.kind for node in here}
    return F in kinds or (BW in kinds and (not splits or len(kinds) > 1))
