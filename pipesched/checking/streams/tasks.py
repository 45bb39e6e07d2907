"""Argument: tasks of a stream that begin late and are far from the end run one at a time in between.

Micro-batches of a chain are alike, so that the k-th start of a task is no sooner than the k-th start of each that it
waits for allows, nor than k times its own duration after the first; and so from the end. Where all of two chains wait
for each other in shares, k starts of one need as large a share of the other's, rounded up.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from graphlib import TopologicalSorter

from pipesched.checking.finding import NotCoveredError, RefusedEvidenceError
from pipesched.checking.streams.task_paths import Needed, Node, TaskPaths
from pipesched.deadline import SHORT, asking
from pipesched.problem.passes import BW, B, F, W
from pipesched.problem.problem import Problem
from pipesched.problem.quantities import DeviceId, MemorySteps, Ticks
from pipesched.problem.stage import Stage, TaskSpec, gradient_lag
from pipesched.results.evidence import MemoryOfDevice, StreamMemory, StreamTasks, StreamWeights

# Quantities of a problem that arguments about streams know of.
KNOWN = frozenset({"tasks", "transfer_stream"})

OfTasks = StreamTasks | StreamMemory | StreamWeights
OfOwner = OfTasks | MemoryOfDevice


def stream_tasks(problem: Problem, evidence: StreamTasks) -> Fraction:
    """Return the bound, in ticks: the evidence's head and tail, and between them the work of some tasks of a stream.

    These are the tasks that begin no sooner than the head, and after whose end at least the tail remains. Raises
    `RefusedEvidenceError` if there are none, or if the evidence's owner does not fit the objective; `NotCoveredError`
    where backwards cannot all be split.
    """
    problem = split_and_checked(problem, evidence)
    between = TasksBetween(_of_all_chains(problem), evidence)
    inside = {node: between.inside(node) for node in between.on(evidence.device, evidence.stream)}
    if not any(inside.values()):
        raise RefusedEvidenceError(f"no such task on stream {evidence.stream} of device {evidence.device}")
    work = sum(count * between.paths.ticks[node] for node, count in inside.items())
    return between.head + work + between.tail


class TasksBetween:
    """The tasks of a chain with the least times before and after each, and the evidence's `head` and `tail` in ticks.

    `heads[task]` are the least ticks before the task's first, second, ... start, `tails[task]` those after its last,
    last but one, ... end; None where no path connects it with the owner's tasks.
    """

    def __init__(self, paths: TaskPaths, evidence: OfTasks) -> None:
        self.paths, finer = paths, evidence.tick / paths.problem.tick
        self.head, self.tail = evidence.head * finer, evidence.tail * finer
        self.heads, self.tails = to_and_from(paths, evidence.owner)

    def on(self, device: DeviceId, stream: str) -> list[Node]:
        """Return the tasks on a stream of a device."""
        return [node for node, where in self.paths.where.items() if where == (device, stream)]

    def inside(self, node: Node) -> int:
        """Return for how many micro-batches a task begins no sooner than the head and leaves the tail or more after it.

        0 if no path leads to the task or from it.
        """
        head, tail = self.heads[node], self.tails[node]
        if head is None or tail is None:
            return 0
        return sum(h >= self.head and t >= self.tail for h, t in zip(head, reversed(tail), strict=True))


def between_by_chain(problem: Problem, evidence: OfTasks) -> Iterator[tuple[TasksBetween, int]]:
    """Yield the tasks of every chain that has micro-batches, with the chain's number of micro-batches."""
    for chain in problem.placement.chains:
        count = len(problem.microbatches_of[chain[0]])
        if count:
            yield TasksBetween(TaskPaths(problem, chain), evidence), count


def _of_all_chains(problem: Problem) -> TaskPaths:
    """Return the tasks of all chains, with predecessors on other chains where all micro-batches of both take part."""
    walked = problem.microbatches_of
    chains = [chain for chain in problem.placement.chains if walked[chain[0]]]
    whole, *others = [TaskPaths(problem, chain) for chain in chains]
    for other in others:
        whole.ticks |= other.ticks
        whole.where |= other.where
        whole.needs |= other.needs
    gradient = B if whole.splits else BW
    for before, after, backward, places, waits_for_forwards, barrier in problem.chain_arcs.arcs:
        if not places and walked[before] and walked[after]:
            begins = gradient if backward else F
            ends = F if waits_for_forwards else begins
            here, there = (problem.placement.stage_device[stage] for stage in (before, after))
            lag = problem.stages[before if barrier or not backward else after].transfer
            lag += problem.links[here][there] if problem.links and not barrier else 0
            lag = gradient_lag(problem.stages[after], lag) if backward else lag
            last = Node(ends, before, len(problem.stages[before].tasks_of(ends)) - 1)
            whole.needs[Node(begins, after, 0)].append(Needed(last, lag if barrier or here != there else 0))
    order = TopologicalSorter({node: [one for one, _ in needs] for node, needs in whole.needs.items()})
    whole.needs = {node: whole.needs[node] for node in order.static_order()}
    return whole


def to_and_from(
    paths: TaskPaths, owner: DeviceId | None
) -> tuple[dict[Node, list[Ticks] | None], dict[Node, list[Ticks] | None]]:
    """Return the least ticks before the start of each task, and after its end, within the span of device `owner`.

    Before: an ascending list for the first, second, ... micro-batch. After: one for the last, the last but one, ...
    micro-batch, ascending too. None where no path from (or to) a task of the owner leads to (or from) the task; never
    if `owner` is None, which stands for the makespan.
    """
    after: dict[Node, list[tuple[Node, int]]] = {node: [] for node in paths.needs}
    before: dict[Node, list[tuple[Node, int]]] = {node: [] for node in paths.needs}
    for node, needs in paths.needs.items():
        for one, lag in needs:
            before[node].append((one, paths.ticks[one] + lag))
            after[one].append((node, paths.ticks[node] + lag))
    heads = _times(paths, owner, list(paths.needs), before)
    return heads, _times(paths, owner, list(reversed(paths.needs)), after)


def _times(
    paths: TaskPaths,
    owner: DeviceId | None,
    sequence: Iterable[Node],
    neighbours: dict[Node, list[tuple[Node, Ticks]]],
) -> dict[Node, list[Ticks] | None]:
    """Return for each task the least ticks to the start of its first, second, ... run (or from its end, if backwards).

    None where no path from a task of device `owner` leads to it. `sequence` has each task after its `neighbours`, which
    are (task, least ticks from its start, or to its end, to this one's).
    """
    found: dict[Node, list[int] | None] = {}
    for node in asking(sequence, SHORT):
        count = len(paths.problem.microbatches_of[node.stage])
        by_neighbour = [
            [known[-(-k * len(known) // count) - 1] + ticks for k in range(1, count + 1)]
            for one, ticks in neighbours[node]
            if (known := found[one]) is not None
        ]
        by_neighbour += [[0] * count] if owner in (None, paths.where[node][0]) else []
        longest = [max(together) for together in zip(*by_neighbour, strict=True)] if by_neighbour else None
        for k in range(1, count if longest else 0):
            assert longest is not None
            longest[k] = max(longest[k], longest[k - 1] + paths.ticks[node])
        found[node] = longest
    return found


def split_and_checked(problem: Problem, evidence: OfOwner) -> Problem:
    """Return the problem in which all backwards are split, after a check that the evidence bounds its objective.

    `RefusedEvidenceError` if evidence for a span has no owner, or evidence for a makespan has one; `NotCoveredError`
    for blocks, or if BW may be better than B and W.
    """
    if (evidence.owner is None) != (problem.objective.from_zero):
        raise RefusedEvidenceError(f"a {problem.objective} is not measured so: owner {evidence.owner}")
    return with_split_backwards(problem)


def limited_room(problem: Problem, device: DeviceId) -> MemorySteps:
    """Return the memory of a device for activations; `RefusedEvidenceError` without a limit or such a device."""
    room = problem.room[device] if 0 <= device < problem.devices else None
    if room is None:
        raise RefusedEvidenceError(f"device {device} has no limit of memory")
    return room


def with_split_backwards(problem: Problem) -> Problem:
    """Return the relaxation in which all backwards that may be split run as B and W.

    No schedule of the problem is better. Where each pass is a single task, B takes the lesser time of B and BW, and W
    so much that both take the lesser of their sum and BW. Passes of several tasks keep them; `NotCoveredError` if BW
    may be better than B and W, or for blocks. Memory that B takes in addition is left out. Stages without a W stay as
    they are.
    """
    return replace(problem, stages=tuple(map(_with_split_backward, problem.stages)))


def _with_split_backward(stage: Stage) -> Stage:
    """Return a stage whose backwards run as B and W, no slower; `NotCoveredError` if BW may be better, or in blocks."""
    if stage.in_blocks:
        raise NotCoveredError("blocks of two passes")
    if stage.weight is None:
        return stage
    fused, backward, weight = (stage.tasks_of(kind) for kind in (BW, B, W))
    received = backward[:1] if backward[0].receives and fused[0] == backward[0] else ()
    if received:
        fused, backward = fused[1:], backward[1:]
        weight = tuple(one if one.after is None else one._replace(after=one.after - 1) for one in weight)
    freed, single = max(stage.freed, 0), len(fused) == len(backward) == len(weight) == 1
    if single and {task.stream for task in (*fused, *backward, *weight)} == {stage.stream}:
        gradient = min(backward[0].ticks, fused[0].ticks)
        weight_ticks = min(backward[0].ticks + weight[0].ticks, fused[0].ticks) - gradient
        others = tuple((kind, tasks) for kind, tasks in stage.tasks if kind is F)
        if received:
            compute = TaskSpec(stage.stream, gradient), TaskSpec(stage.stream, gradient + weight_ticks)
            others += ((B, (*received, compute[0])), (BW, (*received, compute[1])))
        return replace(
            stage, backward=gradient, weight=weight_ticks, fused=gradient + weight_ticks, tasks=others, freed=freed
        )
    if not interleaves(fused, backward, weight):
        raise NotCoveredError("a backward that may be better in one go")
    return replace(stage, freed=freed)


def interleaves(fused: Sequence[TaskSpec], backward: Sequence[TaskSpec], weight: Sequence[TaskSpec]) -> bool:
    """Return True if BW has exactly the tasks of B, in order, and among them those of W after their predecessors.

    Tasks are equal if their streams, ticks and names are.
    """
    pending, done = [(task[:3], task.after) for task in weight], 0
    for task in fused:
        if done < len(backward) and backward[done][:3] == task[:3]:
            done += 1
            continue
        ready = [
            one for one in pending if one[0] == task[:3] and (len(backward) - 1 if one[1] is None else one[1]) < done
        ]
        if not ready:
            return False
        pending.remove(ready[0])
    return done == len(backward) and not pending
