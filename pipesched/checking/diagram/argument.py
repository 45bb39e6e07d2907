"""Argument: the forwards and gradients of some stages run in some order, and other stages are delays.

Micro-batches of a chain are identical. If their numbers are exchanged on each stage by the order in which they run
there, precedences still hold, the memory level is the same at every instant, and each device runs the same at the same
times, blocks of a forward and a gradient too, also of two chains. So a stage's forwards run in order, and its
gradients, and how many have run each step determines all that an order has left. If each stage that is not modelled
were on a device of its own with unlimited memory, every schedule would stay feasible, and take no longer. A device's
memory is shared by the chains: a forward needs memory that gradients of any of them have released there, and time for
all weight passes except those whose memory it can do without. Steps are taken by their starts, so that none starts
before the last.

If stages are tasks, the weight tasks of one stage may hold its memory together (`joint`): what B leaves is given back
when the last of them has ended. A micro-batch whose B has ended holds that while any of them is pending, all of which
may be so much work. One whose B runs, of which some tasks have ended, has its activation in memory, and the weight
tasks that waited for these may be pending besides. If the task with the activation is not modelled, nothing is known of
the memory of the others, and any number of them may be pending.

For the makespan time 0 is its start: a chain's first modelled step waits for the path to it, and the path back to its
first stage follows its last one. The same holds for the span of the device of a chain's first stage, of which no other
stage needs to be modelled: time 0 is then the start of the chain's first forward. For the span of a modelled device
time 0 is the start of its first modelled pass. Passes that ran elsewhere before may have ended long ago: they take no
time, and none of them bounds the earliest start of a pass after 0. The order ends with the last modelled pass of the
device.

Any order that is pruned ends at the threshold or later, as `projected_completion.py` shows. So no schedule is below the
least end of those that are followed, or below that value.
"""

from __future__ import annotations

from pipesched.checking.finding import NotCoveredError, RefusedEvidenceError
from pipesched.problem.problem import Problem
from pipesched.problem.quantities import StageId, Ticks
from pipesched.results.diagram_evidence import Diagram

_MAX_LABELS, _MAX_THRESHOLD = 1024, 2**50


def decision_diagram(problem: Problem, evidence: Diagram, stage_of: tuple[StageId, ...] | None = None) -> Ticks:
    """Return the least end, in ticks, of the orders of the evidence's stages, or the threshold `below` if that is less.

    The threshold is in ticks of the problem; None bounds nothing. Where stages are tasks, `stage_of` gives for each
    stage of the problem the original one whose passes its tasks are part of; None where they are not. Raises
    `RefusedEvidenceError` if the evidence does not fit the problem. Raises `NotCoveredError` if numbers are too large
    or orders too many.
    """
    from pipesched.checking.diagram.chain_steps import ChainSteps
    from pipesched.checking.diagram.completion import completions, reachable
    from pipesched.checking.diagram.model import Layer
    from pipesched.checking.diagram.projected_completion import SmallerBounds, smaller_bounds
    from pipesched.checking.diagram.replay import least_end
    from pipesched.checking.diagram.walk import walk_along

    _require(problem, evidence)
    if evidence.joint and stage_of is None:
        raise RefusedEvidenceError("weight tasks that hold memory together, of passes of one task")
    joint = stage_of if evidence.joint else None
    where, rows, threshold, owner = problem.placement.stage_device, evidence.rows, evidence.below, evidence.device
    walk, width, bounds = (
        walk_along(problem, evidence.stages, owner, joint),
        evidence.width,
        list[SmallerBounds](),
    )
    # One of all stages, or of each device by itself, but of a span: others would have another time 0.
    devices = dict.fromkeys(where[stage] for stage in evidence.guide) if rows is not None and owner is None else [owner]
    for device in devices if evidence.guide else ():
        fewer_stages = tuple(stage for stage in evidence.guide if rows is None or where[stage] == device)
        fewer = walk_along(problem, fewer_stages, owner, joint)
        layers = completions(fewer, reachable(fewer.steps))
        if rows is not None:  # of what can follow the states that its own orders reach
            reached = list[Layer]()
            least_end(ChainSteps(fewer, [smaller_bounds(fewer, fewer, layers)]), width, threshold, reached)
            layers = completions(fewer, reached, rows, threshold or 0)
        bounds.append(smaller_bounds(walk, fewer, layers))
    return least_end(ChainSteps(walk, bounds), width, threshold)


def _require(problem: Problem, evidence: Diagram) -> None:
    """Raise `RefusedEvidenceError` unless the evidence is a diagram that bounds the problem.

    Raises `NotCoveredError` if passes are of several tasks, and the diagram has completion bounds or a device, is of
    several chains, or has blocks.
    """
    where, stages, fewer_stages, device = problem.placement, evidence.stages, evidence.guide, evidence.device
    for some in (stages, fewer_stages):
        if some != tuple(stage for chain in where.chains for stage in chain if stage in some):
            raise RefusedEvidenceError(f"stages {list(some)} are not those of chains, in the order of these")
    of_device = {stage for stage in stages if where.stage_device[stage] == device}
    several, makespan = len({where.chain_index[stage] for stage in stages}) > 1, problem.objective.from_zero
    numbers = [number for number in (evidence.width, evidence.rows) if number is not None]
    refused = {
        "no stages, or a guide of others": not stages or not set(fewer_stages) <= set(stages),
        "no micro-batch walks a chain": not all(len(problem.microbatches_of[stage]) for stage in stages),
        "numbers of labels or rows": not all(0 < number <= _MAX_LABELS for number in numbers),
        "a guide without a value, or a value without one": (evidence.below is None) == bool(fewer_stages),
        "rows of no guide": evidence.rows is not None and not fewer_stages,
        "ways to hold activations": evidence.ways,
        "orders that end below nothing": not 0 <= (evidence.below or 0) <= _MAX_THRESHOLD,
        "another objective": not makespan and not problem.objective.by_device,
        "the makespan of a device": makespan and device is not None,
        "the span of no device, of several chains": not makespan and device is None and several,
        "the span of a device that is not kept": device is not None and not of_device,
        "a guide without stages of the device": bool(fewer_stages) and not of_device <= set(fewer_stages),
    }
    for why, found in refused.items():
        if found:
            raise RefusedEvidenceError(f"{why}: {evidence}")
    one_task_each = problem.network.one_task_each
    blocks = problem.overlaps
    if not one_task_each and (fewer_stages or device is not None or several or blocks):
        raise NotCoveredError("a pass is several tasks")
