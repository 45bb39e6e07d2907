"""A block graph: the work of one micro-batch as blocks with durations, devices, precedences and memory.

The periodic model speaks of blocks only. A problem becomes a graph by `graph_of`; shapes that no problem file can
describe, such as a layer that all devices run at once, are graphs written by hand (Tessel, HPCA'24).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product
from typing import NamedTuple

from pipesched.problem.mode_gains import block_length, fused_is_dominated, saved_by_block
from pipesched.problem.network.task_network import MemoryChange
from pipesched.problem.passes import BW, B, F, Pass, PassKind, W
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
    """Blocks `backward` and `weight` may run as one, of `ticks`, whose memory is given back when all of it ends."""

    backward: int
    weight: int
    ticks: int


class Overlap(NamedTuple):
    """Block `forward` of one micro-batch and `backward`, fused, of another may run together, in `ticks` for both."""

    forward: int
    backward: int
    ticks: int


@dataclass(frozen=True)
class BlockGraph:
    """Blocks are known by their number.

    `microbatches` is how many micro-batches one copy of the graph stands for: one for each chain. `capacity[d]` is None
    where device d's memory is unlimited. `of_pass` tells the block of a role and stage where the graph is a problem's.
    What two blocks of an overlap take of memory is taken when both start, and given back when both end.
    """

    blocks: tuple[Block, ...]
    waits: tuple[Precedence, ...]
    capacity: tuple[int | None, ...]
    microbatches: int = 1
    fusions: tuple[Fusion, ...] = ()
    of_pass: Mapping[tuple[PassKind, int], int] = field(default_factory=dict)
    overlaps: tuple[Overlap, ...] = ()

    @cached_property
    def on_device(self) -> tuple[tuple[int, ...], ...]:
        """The blocks of each device."""
        held: list[list[int]] = [[] for _ in self.capacity]
        for number, block in enumerate(self.blocks):
            for device in block.devices:
                held[device].append(number)
        return tuple(map(tuple, held))

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
    """The blocks of a problem: F, the backward that sends the gradient, and W, for every stage that is walked.

    A backward block has B's duration where it may split; `fusions` tell where it may run in one go, `overlaps` which
    forwards and full backwards are faster together than in turn.
    """
    splittable = problem.splittable
    kinds: tuple[PassKind, ...] = (F, B, W) if splittable else (F, BW)
    walked = [chain for chain in problem.placement.chains if problem.microbatches_of[chain[0]]]
    blocks: list[Block] = []
    of_pass: dict[tuple[PassKind, int], int] = {}
    for chain in walked:
        for kind, stage in ((kind, stage) for kind in kinds for stage in chain):
            p = Pass(kind, stage, 0)
            of_pass[B if kind is BW else kind, stage] = len(blocks)
            memory = {problem.device(p): problem.network.change[kind, stage]}
            blocks.append(Block(f"{kind.value}{stage}", problem.duration(p), memory))
    waits = []
    for (kind, stage), block in of_pass.items():
        for alternatives, lag, *_ in problem.network.needs[BW if kind is B and not splittable else kind, stage]:
            before, sender = alternatives[0]
            waits.append(Precedence(of_pass[B if before is BW else before, sender], block, lag))
    fusions = tuple(
        Fusion(of_pass[B, s], of_pass[W, s], problem.duration(Pass(BW, s, 0)))
        for s in (s for chain in walked for s in chain)
        if splittable and not fused_is_dominated(problem, s)
    )
    return BlockGraph(
        blocks=tuple(blocks),
        waits=tuple(waits),
        capacity=problem.room,
        microbatches=len(walked),
        fusions=fusions,
        of_pass=of_pass,
        overlaps=tuple(_overlaps(problem, of_pass)),
    )


def _overlaps(problem: Problem, of_pass: Mapping[tuple[PassKind, int], int]) -> Iterator[Overlap]:
    """Every forward with every backward of its device that is faster in one block with it than behind it.

    A block that is not, starts and ends no pass sooner than the forward and behind it the backward do, and where B and
    W are never worse than the full backward none gains.
    """
    forwards, backwards = ([stage for role, stage in of_pass if role is kind] for kind in (F, B))
    for stage, other in product(forwards, backwards):
        if other not in problem.placement.on_device_of(stage) or fused_is_dominated(problem, other):
            continue
        ticks = block_length(problem, stage, other)
        if ticks is not None and saved_by_block(problem, stage, other) > 0:
            yield Overlap(of_pass[F, stage], of_pass[B, other], ticks)
