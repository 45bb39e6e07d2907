"""The placements ("shapes") of Tessel (HPCA'24): blocks that several devices may run at once.

A forward takes 1 tick, a backward (fused) 3, a block shared by all devices 1; a forward on one device takes one unit of
memory until its backward.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import NamedTuple

from formulations.cyclic.block_graph import Block, BlockGraph, Precedence
from pipesched.problem.network.task_network import MemoryChange


class Step(NamedTuple):
    """A block of one micro-batch; `memory` is what it takes (negative: frees) on each of its devices."""

    devices: tuple[int, ...]
    ticks: int
    memory: int


def forward(device: int) -> Step:
    """Return a stage's forward."""
    return Step((device,), 1, 1)


def backward(device: int) -> Step:
    """Return a stage's fused backward."""
    return Step((device,), 3, -1)


def shared(devices: int, memory: int = 0) -> Step:
    """Return a block that all devices run together."""
    return Step(tuple(range(devices)), 1, memory)


def _there_and_back(devices: Sequence[int]) -> list[Step]:
    return [*map(forward, devices), *map(backward, reversed(devices))]


def v_shape(p: int) -> list[list[Step]]:
    """Return one sequence: forwards on device 0 to p - 1, and back."""
    return [_there_and_back(range(p))]


def x_shape(p: int) -> list[list[Step]]:
    """Return two sequences, of two models at once: one from device 0 to p - 1 and back, one the other direction."""
    return [_there_and_back(range(p)), _there_and_back(range(p - 1, -1, -1))]


def m_shape(p: int) -> list[list[Step]]:
    """Return the V with a shared block at either end, as of an embedding split over all devices."""
    return [[shared(p), *v_shape(p)[0], shared(p)]]


def nn_shape(p: int) -> list[list[Step]]:
    """Return the V with shared blocks at either end and in the middle of the model."""
    there, back = v_shape(p)[0][:p], v_shape(p)[0][p:]
    half = p // 2
    return [[shared(p), *there[:half], shared(p), *there[half:], *back[:half], shared(p), *back[half:], shared(p)]]


def k_shape(p: int) -> list[list[Step]]:
    """Return two sequences, of two branches on half of the devices each, which meet in shared blocks for the loss."""
    meeting, parting = shared(p, 1), shared(p, -1)
    branches = (range(p // 2), range(p // 2, p))
    return [[*map(forward, part), meeting, parting, *map(backward, reversed(part))] for part in branches]


SHAPES: dict[str, Callable[[int], list[list[Step]]]] = {
    "V": v_shape,
    "X": x_shape,
    "M": m_shape,
    "NN": nn_shape,
    "K": k_shape,
}


def shape_graph(name: str, devices: int, memory: int) -> BlockGraph:
    """Return a shape as a block graph of one micro-batch, with the memory of each device.

    Each sequence runs in order; a shared block with memory that both branches have is one block.
    """
    blocks: list[Block] = []
    waits: set[Precedence] = set()
    meetings: dict[int, int] = {}
    for sequence in SHAPES[name](devices):
        before: int | None = None
        for step in sequence:
            joined = len(step.devices) > 1 and step.memory != 0
            if joined and step.memory in meetings:
                number = meetings[step.memory]
            else:
                number = len(blocks)
                change = MemoryChange(max(0, step.memory), min(0, step.memory))
                blocks.append(Block(f"{name}{number}", step.ticks, dict.fromkeys(step.devices, change)))
                if joined:
                    meetings[step.memory] = number
            if before is not None:
                waits.add(Precedence(before, number, 0))
            before = number
    return BlockGraph(tuple(blocks), tuple(sorted(waits)), (memory,) * devices)


def load(graph: BlockGraph) -> Fraction:
    """Return the busiest device's ticks of work for each micro-batch: no period is shorter."""
    return Fraction(max(sum(graph.blocks[b].ticks for b in blocks) for blocks in graph.on_device))
