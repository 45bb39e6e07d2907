"""Seeded random problems of every kind a user may have: placements, memory, modes, links, small and large."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from random import Random

from benchmarks.cases.profiles import v_shape
from pipesched.files.problem_file import problem_from
from pipesched.problem.problem import Problem

# Stage times lie within so many per cent of 10, and the last stage takes up to so many times as long.
_SPREAD, _HEAD = 12, Fraction(3, 2)


@dataclass(frozen=True)
class _Shape:
    """Ranges of a class of problems: `memory` in activations a device, None for no limit.

    `fused` and `block` are shares of B + W and of F + BW, the bounds between which they are drawn; `split` is False
    where B is a full backward. `freed` is the share of the activation that B gives back, `nodes` the devices a node.
    """

    kind: str
    devices: int
    microbatches: int
    memory: str | None
    placement: object = "linear"
    chunks: int = 1
    objective: str = "span"
    fused: tuple[str, str] | None = None
    block: tuple[str, str] | None = None
    split: bool = True
    even: bool = False
    freed: str = "0"
    nodes: int | None = None
    spread: int = _SPREAD

    @property
    def stages(self) -> int:
        if isinstance(self.placement, list):
            return len(self.placement)
        return self.devices * {"v-shape": 2, "bidirectional": 1}.get(str(self.placement), self.chunks)


_SHAPES = (
    _Shape("linear, .6p", 16, 48, "9.5"),
    _Shape("linear, .6p", 32, 96, "20"),
    _Shape("linear, .6p", 8, 24, "4.8"),
    _Shape("linear, 1p", 8, 24, "8"),
    _Shape("linear, 1p", 64, 256, "66"),
    _Shape("linear, 1p", 32, 128, "33"),
    _Shape("linear, 1p, makespan", 16, 32, "16", objective="makespan"),
    _Shape("linear, 2p", 8, 32, "16"),
    _Shape("linear, .5p, long", 8, 256, "4"),
    _Shape("linear, .5p, long", 4, 256, "2"),
    _Shape("linear, no limit", 8, 16, None, objective="makespan"),
    _Shape("linear, B gives back", 8, 24, "6", freed="0.4"),
    _Shape("linear, nodes", 16, 32, "12", nodes=4),
    _Shape("linear, small", 3, 7, "2.5"),
    _Shape("linear, small", 4, 8, "3", objective="makespan"),
    _Shape("wave, 4 chunks", 8, 16, "24", "wave", 4),
    _Shape("wave, 4 chunks", 4, 12, "10", "wave", 4),
    _Shape("wave, 4 chunks, makespan", 4, 8, "16", "wave", 4, objective="makespan"),
    _Shape("interleaved x2", 16, 32, "30", "interleaved", 2),
    _Shape("interleaved x2", 4, 16, "8", "interleaved", 2),
    _Shape("interleaved x4", 4, 12, "16", "interleaved", 4, objective="makespan"),
    _Shape("V", 8, 24, "9", "v-shape", 2),
    _Shape("V", 8, 24, "16", "v-shape", 2),
    _Shape("V", 4, 64, "5", "v-shape", 2),
    _Shape("V, blocks", 4, 12, "8", "v-shape", 2, block=("0.75", "0.8"), objective="makespan"),
    _Shape("bidirectional", 8, 24, "9", "bidirectional"),
    _Shape("bidirectional, blocks", 8, 20, "9", "bidirectional", block=("0.75", "0.8"), objective="makespan"),
    _Shape("bidirectional, blocks", 8, 20, "5", "bidirectional", block=("0.75", "0.8"), objective="makespan"),
    _Shape("bidirectional, blocks", 4, 8, "5", "bidirectional", block=("0.75", "0.8"), objective="makespan"),
    _Shape(
        "bidirectional, even blocks", 8, 20, "9", "bidirectional", block=("0.8", "0.8"), objective="makespan", even=True
    ),
    _Shape("linear, blocks", 8, 24, "10", block=("0.8", "0.9")),
    _Shape("linear, cheaper fused", 8, 24, "6", fused=("0.8", "0.9")),
    _Shape("linear, cheaper fused", 8, 24, "8.6", fused=("0.8", "0.9")),
    _Shape("linear, cheaper fused, even", 8, 24, "6", fused=("0.8", "0.8"), even=True),
    _Shape("linear, cheaper fused, even", 8, 24, "8.6", fused=("0.85", "0.85"), even=True),
    _Shape("linear, fused only", 16, 48, "12.2", split=False),
    _Shape("linear, fused only", 8, 24, "8", split=False),
    _Shape("custom placement", 4, 12, "7", [0, 1, 2, 3, 1, 0]),
)


@cache
def random_problems(seed: int = 0) -> tuple[Problem, ...]:
    """Every problem; the same seed gives the same ones, and a class more or less leaves the others as they are.

    The last three are no random ones: V placement at a third of the memory, with times measured on 16 devices.
    """
    measured = (v_shape(microbatches, "third") for microbatches in (48, 64, 128))
    return (*(_drawn(shape, seed) for shape in _SHAPES), *measured)


def _drawn(shape: _Shape, seed: int) -> Problem:
    room = "no" if shape.memory is None else shape.memory
    name = f"{shape.kind} p={shape.devices} m={shape.microbatches} memory {room}"
    random = Random(f"{name} {seed}")
    times, sums = _times(shape, random)
    memory: dict[str, object] = {"freed_by_backward": Fraction(shape.freed)}
    if shape.memory is not None:
        memory["capacity"] = Fraction(shape.memory)
    document: Mapping[str, object] = {
        "name": name,
        "devices": shape.devices,
        "microbatches": shape.microbatches,
        "placement": shape.placement,
        **({"chunks": shape.chunks} if shape.placement in ("interleaved", "wave") else {}),
        "times": {**times, **sums, "transfer": _transfer(shape, random)},
        "memory": memory,
        "objective": shape.objective,
    }
    return problem_from(document, f"benchmark {name}")


def _times(shape: _Shape, random: Random) -> tuple[dict[str, list[Fraction]], dict[str, list[Fraction]]]:
    """Forward, backward and weight of each stage, to one decimal; and full backwards and blocks, where they differ."""
    drawn = [[_near(random, shape) for _ in range(3)] for _ in range(shape.stages)]
    if not shape.even:
        head = 1 + (_HEAD - 1) * Fraction(random.randint(0, 10), 10)
        drawn[-1] = [round(head * time, 1) for time in drawn[-1]]
    forward, backward, weight = map(list, zip(*drawn, strict=True))
    whole = [b + w for b, w in zip(backward, weight, strict=True)]
    if not shape.split:
        return {"forward": forward, "backward": whole}, {}
    sums = {}
    if shape.fused is not None:
        whole = sums["fused"] = [round(_between(random, shape.fused) * time, 1) for time in whole]
    if shape.block is not None:
        both = [f + b for f, b in zip(forward, whole, strict=True)]
        sums["overlapped"] = [round(_between(random, shape.block) * time, 1) for time in both]
    return {"forward": forward, "backward": backward, "weight": weight}, sums


def _near(random: Random, shape: _Shape) -> Fraction:
    spread = 0 if shape.even else 10 * shape.spread
    return round(Fraction(10) * Fraction(random.randint(1000 - spread, 1000 + spread), 1000), 1)


def _between(random: Random, ends: tuple[str, str]) -> Fraction:
    low, high = map(Fraction, ends)
    return low + (high - low) * Fraction(random.randint(0, 10), 10)


def _transfer(shape: _Shape, random: Random) -> object:
    """One number, or little within a node and more between two."""
    if shape.nodes is None:
        return Fraction(random.randint(0, 10), 10)
    size = shape.nodes
    return [
        [0 if a == b else Fraction(1, 5) if a // size == b // size else Fraction(2) for b in range(shape.devices)]
        for a in range(shape.devices)
    ]
