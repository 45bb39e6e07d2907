"""A suite of problems drawn for a seed, within wide ranges: what a user may have, and nobody tuned for."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from random import Random

from pipesched.files.problem_file import problem_from
from pipesched.problem.feasibility import why_infeasible
from pipesched.problem.problem import Problem

COUNT = 40
# Per cent by which times and activations of stages differ from their mean.
_SPREADS = (0, 5, 12, 40)
# Long problems have this many micro-batches a device.
_LONG = 12


@dataclass(frozen=True)
class _Kind:
    """A placement with its most devices, the share of problems with overlapped blocks, and how often it is drawn."""

    placement: str
    devices: int
    blocks: float
    times: int


_KINDS = (
    _Kind("linear", 24, 0.15, 14),
    _Kind("v-shape", 10, 0.3, 8),
    _Kind("interleaved", 10, 0.0, 6),
    _Kind("wave", 8, 0.0, 5),
    _Kind("bidirectional", 10, 0.5, 7),
)


def drawn_problems(seed: int) -> tuple[Problem, ...]:
    """An equal number of each kind for every seed; a number of the suite is drawn by itself, and can be drawn alone."""
    kinds = [kind for kind in _KINDS for _ in range(kind.times)]
    return tuple(_feasible(f"{seed}-{number}", kind) for number, kind in enumerate(kinds, 1))


def _feasible(name: str, kind: _Kind) -> Problem:
    random = Random(f"drawn {name}")
    while True:
        problem = _drawn(name, kind, random)
        if why_infeasible(problem) is None:
            return problem


def _drawn(name: str, kind: _Kind, random: Random) -> Problem:
    """One problem; a B takes about as long as an F of 10, its W .4 to 1.3 times as long as B."""
    devices, chunks = _devices(kind, random), random.choice((2, 3, 4)) if kind.placement == "interleaved" else 2
    stages = devices * (1 if kind.placement in ("linear", "bidirectional") else chunks)
    microbatches = _microbatches(devices, kind, random)
    times, label = _times(kind, stages, random)
    objective = random.choice(("makespan", "span"))
    memory, share = _memory(devices, stages, min(devices, microbatches), "weight" in times, random)
    document = {
        "name": f"{name} {kind.placement}{label} p={devices} m={microbatches} memory {share}",
        "devices": devices,
        "microbatches": microbatches,
        "placement": kind.placement,
        **({"chunks": chunks} if kind.placement in ("interleaved", "wave") else {}),
        "times": {**times, "transfer": _transfer(devices, random)},
        "memory": memory,
        "objective": objective,
    }
    return problem_from(document, name)


def _devices(kind: _Kind, random: Random) -> int:
    """Any number, odd ones too, small ones more often; of two directions an even one."""
    devices = round(3 * (kind.devices / 3) ** random.random())
    return 2 * (devices // 2 or 1) if kind.placement == "bidirectional" else devices


def _microbatches(devices: int, kind: _Kind, random: Random) -> int:
    most = _LONG * devices if random.random() < 0.1 else 4 * devices
    count = random.randint(devices, most)
    return count + count % 2 if kind.placement == "bidirectional" else count


def _times(kind: _Kind, stages: int, random: Random) -> tuple[dict[str, list[Fraction]], str]:
    """Times of each stage to one decimal, those of the last up to 1.8 times as long; and what is special about them."""
    spread, head = random.choice(_SPREADS), Fraction(random.randint(10, 18), 10)
    back, ratio = Fraction(random.randint(80, 120), 100), Fraction(random.randint(40, 130), 100)
    size = [_near(random, spread) * (head if stage == stages - 1 else 1) for stage in range(stages)]

    def column(mean: Fraction) -> list[Fraction]:
        return [round(mean * one * _near(random, spread // 4), 1) for one in size]

    forward, backward, weight = column(Fraction(10)), column(10 * back), column(10 * back * ratio)
    whole, mode = [b + w for b, w in zip(backward, weight, strict=True)], random.random()
    blocks = random.random() < kind.blocks
    label = ", blocks" if blocks else ""
    times = {"forward": forward, "backward": whole} if mode < 0.15 else {"forward": forward, "backward": backward}
    if mode < 0.15:
        label += ", full backwards"
    else:
        times["weight"] = weight
        if mode < 0.35:
            share = Fraction(random.randint(75, 98), 100)
            whole = times["fused"] = [round(share * one, 1) for one in whole]
            label += ", cheaper fused"
    if blocks:
        share = Fraction(random.randint(70, 95), 100)
        times["overlapped"] = [round(share * (f + b), 1) for f, b in zip(forward, whole, strict=True)]
    return times, label


def _near(random: Random, spread: int) -> Fraction:
    return 1 + Fraction(random.randint(-10 * spread, 10 * spread), 1000)


def _memory(devices: int, stages: int, in_flight: int, splits: bool, random: Random) -> tuple[dict[str, object], str]:
    """From .4 of what 1F1B holds on its first device to twice that, or without limit; and that share as text."""
    spread = random.choice(_SPREADS[:3])
    activation = [round(_near(random, spread), 2) for _ in range(stages)]
    memory: dict[str, object] = {"activation": activation}
    if splits and random.random() < 0.4:
        memory["freed_by_backward"] = Fraction(2, 5)
    if random.random() < 0.1:
        return memory, "unlimited"
    share = round(Fraction(4, 10) * Fraction(5 ** random.random()), 2)
    memory["capacity"] = round(share * in_flight * Fraction(stages, devices), 1)
    return memory, f"{float(share):g} of 1F1B"


def _transfer(devices: int, random: Random) -> object:
    """One number up to three fifths of a forward, or little within a node and more between two."""
    if random.random() < 0.75:
        return Fraction(random.choice((0, 0, 2, 10, 60)), 10)
    size, far = random.choice((2, 4)), Fraction(random.randint(5, 30), 10)
    return [
        [0 if a == b else Fraction(1, 5) if a // size == b // size else far for b in range(devices)]
        for a in range(devices)
    ]
