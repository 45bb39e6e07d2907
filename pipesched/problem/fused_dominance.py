"""Dominance of split backwards (B, then W) over fused ones (BW)."""

from __future__ import annotations

from collections.abc import Sequence

from pipesched.problem.passes import BW, B, F, W
from pipesched.problem.problem import Problem
from pipesched.problem.quantities import StageId, Ticks
from pipesched.problem.stage import Stage, TaskSpec


def fused_is_dominated(problem: Problem, stage: StageId) -> bool:
    """Return True if B directly followed by W is never worse than BW on a stage, so that BW need not be considered.

    False where backwards are never split. For passes of single tasks on one stream, BW must not be shorter than B and W
    together. For passes of several tasks, BW must run exactly the tasks of B and W, in an order in which B and W could
    run too.

    False also in three cases in which BW has another advantage: B takes memory that is limited; a block of a forward
    and a BW saves time (with several tasks: any block); or the reduction of some bucket of gradients could start
    earlier after BW than after W.
    """
    own = problem.stages[stage]
    takes_more = own.freed < 0 and problem.room[problem.placement.stage_device[stage]] is not None
    if own.weight is None or takes_more:
        return False
    # What B and BW both receive first is the same task.
    fused, backward, weight = map(own.tasks_after_receipt, (BW, B, W))
    if len(fused) == len(backward) == len(weight) == 1:
        one_stream = len({task.stream for task in (*fused, *backward, *weight)}) == 1
        one_stream &= {*fused[0].also}.issuperset((*backward[0].also, *weight[0].also))
        split = backward[0].ticks + weight[0].ticks
        return one_stream and fused[0].ticks >= split and not _gains_by_block(problem, stage)
    if problem.network.blocks:
        return False
    places = _places_of_weights(fused, backward, weight)
    return places is not None and not _reduces_sooner(problem, stage, places)


def _gains_by_block(problem: Problem, stage: StageId) -> bool:
    """Return True if a block of a forward and BW on the stage's device could be shorter than the forward, B and W."""
    return any(
        ticks < problem.stages[forward].ticks(F) + _split_ticks(problem.stages[stage])
        for (forward, backward), ticks in problem.network.blocks.items()
        if backward == stage
    )


def _places_of_weights(
    fused: Sequence[TaskSpec], backward: Sequence[TaskSpec], weight: Sequence[TaskSpec]
) -> list[int] | None:
    """Return the position in BW of each task of W; None unless BW runs just the tasks of B and W.

    BW must run the tasks of B in their order, and each task of W after the task of B that it waits for.
    """
    done, places = 0, dict[int, int]()
    for place, task in enumerate(fused):
        if done < len(backward) and _same(task, backward[done]):
            done += 1
            continue
        ready = (
            n
            for n, w in enumerate(weight)
            if n not in places and _same(task, w) and (len(backward) if w.after is None else w.after + 1) <= done
        )
        found = next(ready, None)
        if found is None:
            return None
        places[found] = place
    return [places[n] for n in range(len(weight))] if done == len(backward) and len(places) == len(weight) else None


def _same(one: TaskSpec, other: TaskSpec) -> bool:
    """Return True if two tasks of different passes take the same time of the same streams."""
    return one[:3] == other[:3] and {*one.also} == {*other.also}


def _reduces_sooner(problem: Problem, stage: StageId, places: Sequence[int]) -> bool:
    """Return True if a bucket of gradients may be reduced in BW before all tasks of W that it waits for.

    `places` are the positions of the tasks of W in BW.
    """
    once, ends = problem.stages[problem.parameters.holder(stage)].once, problem.dependencies.ends_of
    number = once[0].parts if once else 1
    buckets = [(at, number) for at in range(number)]
    return any(places[part] > ends(BW, stage, one)[-1] for one in buckets for part in ends(W, stage, one))


def _split_ticks(stage: Stage) -> Ticks:
    """Return the ticks of B directly followed by W."""
    return stage.ticks(B) + stage.ticks(W)
