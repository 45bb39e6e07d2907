"""A block graph: the work of one micro-batch as blocks with durations, devices, precedences and memory.

The periodic model is stated in blocks only. `graph_of` converts a problem; shapes that no problem file can describe,
such as a layer that all devices run at once, are graphs written by hand (Tessel, HPCA'24).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple, TypeAlias

from pipesched.errors import BadInput
from pipesched.problem.fused_dominance import fused_is_dominated
from pipesched.problem.network.task_network import MemoryChange, PassType, Resource, TaskNetwork, TaskType
from pipesched.problem.passes import BW, B, F, Pass, W
from pipesched.problem.problem import Problem
from pipesched.problem.quantities import DeviceId, MemorySteps, TaskPart, Ticks

# A block: an index in `BlockGraph.blocks`.
BlockId: TypeAlias = int


@dataclass(frozen=True)
class Block:
    """A block of work of one micro-batch that takes `ticks`, on all devices that are keys of `memory` at once.

    `memory[d]` has the memory that device d takes at the block's start, and the change at its end (negative: freed),
    both in steps of memory.
    """

    name: str
    ticks: Ticks
    memory: Mapping[DeviceId, MemoryChange]

    @property
    def devices(self) -> tuple[DeviceId, ...]:
        return tuple(self.memory)


class Precedence(NamedTuple):
    """Block `after` starts at least `lag` ticks after the end of block `before` of the same micro-batch."""

    before: BlockId
    after: BlockId
    lag: Ticks


class Fusion(NamedTuple):
    """Blocks `backward` and `weight` (B and W) that may run as one full backward of `ticks`.

    At its start the full backward takes memory `taken`; at its end it frees the memory that both blocks free.
    """

    backward: BlockId
    weight: BlockId
    ticks: Ticks
    taken: MemorySteps = 0


class Overlap(NamedTuple):
    """Block `forward` of one micro-batch and fused `backward` of another that may run together, in `ticks` for both."""

    forward: BlockId
    backward: BlockId
    ticks: Ticks


@dataclass(frozen=True)
class BlockGraph:
    """The work of one micro-batch as blocks, identified by their index in `blocks`, with precedences (`waits`).

    Where there are several chains, one copy of the graph has a micro-batch of each: `microbatches` is their number.
    `capacity[d]` is the memory of device d in steps, None if unlimited. `fusions` are the B and W blocks that may run
    as one full backward, `overlaps` the pairs that may run together. Such a pair takes the memory of both blocks when
    it starts, and frees that of both when it ends.

    For the graph of a problem, `of_task` has the block of each task of F, of the backward that sends the gradient, and
    of W; the tasks of a full backward are of kind B there. Where passes are several tasks, each stream is a device of
    the graph.
    """

    blocks: tuple[Block, ...]
    waits: tuple[Precedence, ...]
    capacity: tuple[MemorySteps | None, ...]
    microbatches: int = 1
    fusions: tuple[Fusion, ...] = ()
    of_task: Mapping[TaskType, BlockId] = field(default_factory=dict)
    overlaps: tuple[Overlap, ...] = ()

    @cached_property
    def of_pass(self) -> Mapping[PassType, BlockId]:
        """The index of the block with which a pass begins, by kind (B also for a full backward) and stage."""
        return {task.pass_type: block for task, block in self.of_task.items() if task.part == 0}

    @cached_property
    def on_device(self) -> tuple[tuple[BlockId, ...], ...]:
        """For each device of the graph, the indices in `blocks` of its blocks.

        A block of several devices is in each.
        """
        numbers: list[list[int]] = [[] for _ in self.capacity]
        for number, block in enumerate(self.blocks):
            for device in block.devices:
                numbers[device].append(number)
        return tuple(map(tuple, numbers))

    @cached_property
    def depth(self) -> tuple[int, ...]:
        """For each block, the largest number of precedences on a path that ends at it."""
        found = [0] * len(self.blocks)
        for _ in found:
            for wait in self.waits:
                found[wait.after] = max(found[wait.after], found[wait.before] + 1)
        return tuple(found)

    @cached_property
    def component(self) -> tuple[BlockId, ...]:
        """For each block, the least index of the blocks that precedences connect it to, directly or not.

        So the blocks of a chain have one number, different from those of other chains.
        """
        root = list(range(len(self.blocks)))

        def find(x: int) -> int:
            while root[x] != x:
                root[x] = root[root[x]]
                x = root[x]
            return x

        for wait in self.waits:
            one, other = sorted((find(wait.before), find(wait.after)))
            root[other] = one
        return tuple(map(find, range(len(self.blocks))))


def graph_of(problem: Problem) -> BlockGraph:
    """Return the blocks of a problem: on each stage the tasks of F, of the backward that sends the gradient, and of W.

    Chains without micro-batches have none. Where a backward may be split, its block has the duration of B. `fusions`
    then list the blocks that may run as one full backward, and `overlaps` the forwards and full backwards that are
    shorter together; both only for passes of one task. Raises `BadInput` where the periodic model does not apply
    (`refuse_no_period`).
    """
    refuse_no_period(problem)
    network = problem.network
    kinds = (F, *network.backwards[0])
    walked = [chain for chain in problem.placement.chains if problem.microbatches_of[chain[0]]]
    streams = {where: n for n, where in enumerate(streams_of(problem))}
    blocks: list[Block] = []
    of_task: dict[TaskType, int] = {}
    for chain in walked:
        for kind, stage in ((kind, stage) for kind in kinds for stage in chain):
            takes, gives = _first_and_last(network, (kind, stage))
            change = network.change[kind, stage]
            for part, task in enumerate(network.tasks[kind, stage]):
                of_task[TaskType(B if kind is BW else kind, stage, part)] = len(blocks)
                own = MemoryChange(change.at_start * (part == takes[0]), change.at_end * (part == gives[-1]))
                on = dict.fromkeys((streams[where] for where in task.resources), MemoryChange(0, 0))
                blocks.append(Block(f"{kind.value}{stage}", task.ticks, on | {streams[task.resources[0]]: own}))
    stages = [s for chain in walked for s in chain]
    fusions = tuple(
        Fusion(
            of_task[TaskType(B, s)],
            of_task[TaskType(W, s)],
            problem.duration(Pass(BW, s, 0)),
            network.change[BW, s].at_start,
        )
        for s in (stages if network.gradient is B and network.one_task_each else ())
        if not fused_is_dominated(problem, s)
    )
    graph = BlockGraph(
        blocks=tuple(blocks),
        waits=tuple(_waits(problem, of_task)),
        capacity=tuple(_capacity(problem, where) for where in streams),
        microbatches=len(walked),
        fusions=fusions,
        of_task=of_task,
    )
    return replace(graph, overlaps=tuple(_overlaps(problem, graph.of_pass)))


def streams_of(problem: Problem) -> list[Resource]:
    """Return the resources that are the devices of a problem's graph, in the order of their numbers there.

    They are the streams with tasks, and the first stream of each device.
    """
    first = (Resource(device, problem.streams[0]) for device in range(problem.devices))
    return sorted({*problem.network.resources, *first})


def refuse_no_period(problem: Problem) -> None:
    """Raise `BadInput` for a problem to which the periodic model does not apply.

    These are passes that are not of micro-batches, tasks on several streams, overlapped blocks of passes of several
    tasks, and limited memory that is taken on one stream and freed on another.
    """
    network, allowed = problem.network, "passes, of one or several tasks"
    if not network.has_plain_chains:
        raise BadInput(f"period: found {network.multi_task_feature}; allowed: {allowed}")
    if network.occupies_several:
        raise BadInput("period: found tasks that occupy several streams at once; allowed: one stream each")
    if network.blocks and not network.one_task_each:
        raise BadInput("period: found overlapped blocks of passes of several tasks; allowed: one of the two")
    if any(own is not None and len(_memory_streams(problem, d)) > 1 for d, own in enumerate(problem.room)):
        raise BadInput(
            "period: found memory that is taken on one stream of a device and given back on another; "
            "allowed: one stream, or no capacity"
        )


def _memory_streams(problem: Problem, device: DeviceId) -> set[Resource]:
    """Return the streams of the tasks that take or free memory of a device."""
    network, found = problem.network, set[Resource]()
    for (kind, stage), change in network.change.items():
        if problem.placement.stage_device[stage] == device and kind in (F, *network.backwards[0]):
            takes, gives = _first_and_last(network, (kind, stage))
            parts = [*(takes if change.at_start else ()), *(gives if change.at_end else ())]
            found |= {network.tasks[kind, stage][part].resources[0] for part in parts}
    return found


def _capacity(problem: Problem, where: Resource) -> MemorySteps | None:
    """Return the capacity of the memory that tasks on the stream `where` use.

    None if it is unlimited or they use none.
    """
    if problem.network.one_task_each:
        return problem.room[where.device]
    return next((problem.room[d] for d in range(problem.devices) if where in _memory_streams(problem, d)), None)


def _first_and_last(network: TaskNetwork, pass_type: PassType) -> tuple[tuple[TaskPart, ...], tuple[TaskPart, ...]]:
    """Return the numbers of the tasks of a pass that wait for none of the same pass, and of those that end it."""
    return network.begins[pass_type], network.ends[pass_type]


def _waits(problem: Problem, of_task: Mapping[TaskType, BlockId]) -> Iterator[Precedence]:
    """Yield the precedences between blocks that follow from the network.

    `of_task` gives the block of each type of task. Tasks that take limited memory together, or free it together, are
    put in sequence.
    """
    network = problem.network
    for task, block in of_task.items():
        own = task._replace(kind=network.gradient) if task.kind is B else task
        for after, alternatives, lag, *_ in network.arcs_into[own.pass_type]:
            if after == own:
                before = alternatives[0]
                yield Precedence(of_task[before._replace(kind=B) if before.kind is BW else before], block, lag)
        if task.part == 0 and problem.room[problem.placement.stage_device[task.stage]] is not None:
            for parts in _first_and_last(network, own.pass_type):
                for one, other in pairwise(parts):
                    yield Precedence(of_task[task._replace(part=one)], of_task[task._replace(part=other)], 0)


def _overlaps(problem: Problem, of_pass: Mapping[PassType, BlockId]) -> Iterator[Overlap]:
    """Yield the pairs of a forward and a full backward on one device that are shorter together than in sequence.

    Others start and end no pass sooner than the two in sequence; and where B and W are never worse than the full
    backward no block gains.
    """
    view = problem.pipeline
    for stage, other in view.pairs_on_devices():
        walked = (F, stage) in of_pass and (B, other) in of_pass
        if walked and view.saved_by_block(stage, other) and not fused_is_dominated(problem, other):
            yield Overlap(of_pass[F, stage], of_pass[B, other], view.blocks[stage, other])
