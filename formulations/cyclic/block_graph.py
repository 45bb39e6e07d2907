"""A block graph: the work of one micro-batch as blocks with durations, devices, precedences and memory.

The periodic model speaks of blocks only. A problem becomes a graph by `graph_of`; shapes that no problem file can
describe, such as a layer that all devices run at once, are graphs written by hand (Tessel, HPCA'24).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

from formulations.jobs.gathers import first_parts
from pipesched.errors import BadInput
from pipesched.problem.fused_dominance import fused_is_dominated
from pipesched.problem.network.task_network import MemoryChange, PassType, Resource, TaskNetwork, TaskType
from pipesched.problem.passes import BW, B, F, Pass, W
from pipesched.problem.problem import Problem


@dataclass(frozen=True)
class Block:
    """`ticks` on every device of `memory` at once; `memory[d]` is what it changes there."""

    name: str
    ticks: int
    memory: Mapping[int, MemoryChange]

    @property
    def devices(self) -> tuple[int, ...]:
        return tuple(self.memory)


class Precedence(NamedTuple):
    """Block `after` starts `lag` ticks after the end of block `before` of the same micro-batch, or later."""

    before: int
    after: int
    lag: int


class Fusion(NamedTuple):
    """Blocks `backward` and `weight` may run as one, of `ticks`, whose memory is given back when all of it ends.

    It takes `taken` when it starts.
    """

    backward: int
    weight: int
    ticks: int
    taken: int = 0


class Overlap(NamedTuple):
    """Block `forward` of one micro-batch and `backward`, fused, of another may run together, in `ticks` for both."""

    forward: int
    backward: int
    ticks: int


@dataclass(frozen=True)
class BlockGraph:
    """Blocks are known by their number.

    `microbatches` is how many micro-batches one copy of the graph stands for: one for each chain. `capacity[d]` is None
    where device d's memory is unlimited. Where the graph is a problem's, `of_task` tells the block of a task, whose
    backward is the one that sends the gradient; where passes are several tasks, each stream is a device. What two
    blocks of an overlap take of memory is taken when both start, and given back when both end.
    """

    blocks: tuple[Block, ...]
    waits: tuple[Precedence, ...]
    capacity: tuple[int | None, ...]
    microbatches: int = 1
    fusions: tuple[Fusion, ...] = ()
    of_task: Mapping[TaskType, int] = field(default_factory=dict)
    overlaps: tuple[Overlap, ...] = ()

    @cached_property
    def of_pass(self) -> Mapping[PassType, int]:
        """The block with which a pass begins, by role and stage."""
        return {task.pass_type: block for task, block in self.of_task.items() if task.part == 0}

    @cached_property
    def on_device(self) -> tuple[tuple[int, ...], ...]:
        """The blocks of each device."""
        held: list[list[int]] = [[] for _ in self.capacity]
        for number, block in enumerate(self.blocks):
            for device in block.devices:
                held[device].append(number)
        return tuple(map(tuple, held))

    @cached_property
    def depth(self) -> tuple[int, ...]:
        """The largest number of waits on a path to each block."""
        found = [0] * len(self.blocks)
        for _ in found:
            for wait in self.waits:
                found[wait.after] = max(found[wait.after], found[wait.before] + 1)
        return tuple(found)

    @cached_property
    def component(self) -> tuple[int, ...]:
        """The chain each block belongs to, as the least number of a block that it is tied to by waits."""
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
    """The blocks of a problem: the tasks of F, of the backward that sends the gradient, and of W on each stage walked.

    A backward block has B's duration where it may split; `fusions` tell where it may run in one go, `overlaps` which
    forwards and full backwards are faster together than in turn: both of passes of one task. `BadInput` for what has no
    period.
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
                blocks.append(Block(f"{kind.value}{stage}", task.ticks, {streams[task.resource]: own}))
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
    """The resources of a problem's graph: every stream with tasks, and the first stream of each device."""
    first = (Resource(device, problem.streams[0]) for device in range(problem.devices))
    return sorted({*problem.network.resources, *first})


def refuse_no_period(problem: Problem) -> None:
    """`BadInput` for a problem with passes that are not those of each micro-batch, or memory of several streams."""
    network, allowed = problem.network, "passes, of one or several tasks"
    if not network.has_plain_chains:
        raise BadInput(f"period: found {network.what_is_not_single}; allowed: {allowed}")
    if network.blocks and not network.one_task_each:
        raise BadInput("period: found overlapped blocks of passes of several tasks; allowed: one of the two")
    if any(own is not None and len(_memory_streams(problem, d)) > 1 for d, own in enumerate(problem.room)):
        raise BadInput(
            "period: found memory that is taken on one stream of a device and given back on another; "
            "allowed: one stream, or no capacity"
        )


def _memory_streams(problem: Problem, device: int) -> set[Resource]:
    """The streams of the tasks that take memory of a device and give it back."""
    network, found = problem.network, set[Resource]()
    for (kind, stage), change in network.change.items():
        if problem.placement.stage_device[stage] == device and kind in (F, *network.backwards[0]):
            takes, gives = _first_and_last(network, (kind, stage))
            parts = [*(takes if change.at_start else ()), *(gives if change.at_end else ())]
            found |= {network.tasks[kind, stage][part].resource for part in parts}
    return found


def _capacity(problem: Problem, where: Resource) -> int | None:
    """The memory that tasks on a stream take of."""
    if problem.network.one_task_each:
        return problem.room[where.device]
    return next((problem.room[d] for d in range(problem.devices) if where in _memory_streams(problem, d)), None)


def _first_and_last(network: TaskNetwork, pass_type: PassType) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The tasks of a pass that wait for none of the same pass, and those that end it."""
    return first_parts(network, pass_type), network.ends[pass_type]


def _waits(problem: Problem, of_task: Mapping[TaskType, int]) -> Iterator[Precedence]:
    """The arcs of the network; what takes limited memory together, or gives it back, does so one after the other."""
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


def _overlaps(problem: Problem, of_pass: Mapping[PassType, int]) -> Iterator[Overlap]:
    """(forward, backward) pairs of one device that are shorter as one overlapped block than one after the other.

    A block that is not, starts and ends no pass sooner than the forward and then the backward do, and where B and
    W are never worse than the full backward none gains.
    """
    view = problem.pipeline
    for stage, other in view.pairs_on_devices():
        walked = (F, stage) in of_pass and (B, other) in of_pass
        if walked and view.saved_by_block(stage, other) and not fused_is_dominated(problem, other):
            yield Overlap(of_pass[F, stage], of_pass[B, other], view.blocks[stage])
