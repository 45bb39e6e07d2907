"""Workers and stages that each micro-batch passes through, from the keys of a file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from fractions import Fraction
from typing import Any, NamedTuple


class Step(NamedTuple):
    """A stage on a device of the answer; `own` is that of the file, and `slow` how many times as long it takes."""

    device: int
    stage: int
    own: int
    slow: Fraction = Fraction(1)


def stage_devices(document: Mapping[str, Any]) -> list[int]:
    """The device of each stage of the file."""
    devices, chunks = document["devices"], document.get("chunks", 1)
    down = list(range(devices))
    placement = document.get("placement", "linear")
    if isinstance(placement, list):
        return placement
    if placement in ("v-shape", "wave"):
        return [d for n in range(2 if placement == "v-shape" else chunks) for d in (down[::-1] if n % 2 else down)]
    if placement == "bidirectional":
        return down + down[::-1]
    return down * (chunks if placement == "interleaved" else 1)


def walks(document: Mapping[str, Any]) -> tuple[list[list[Step]], int]:
    """The steps of every micro-batch, and how many devices there are."""
    where, count = stage_devices(document), document["microbatches"]
    paths: list[list[int]]
    if document.get("placement") == "bidirectional":
        half, p = -(-count // 2), document["devices"]
        paths = [list(range(p)) if j < half else list(range(p, 2 * p)) for j in range(count)]
    elif document.get("chains"):
        paths = [list(chain["stages"]) for chain in document["chains"] for _ in range(chain["microbatches"])]
    else:
        paths = [list(range(len(where)))] * count
    pipelines = document.get("pipelines")
    if pipelines is None:
        return [[Step(where[s], s, where[s]) for s in stages] for stages in paths], document["devices"]
    lost = {tuple(worker) for worker in pipelines.get("lost", ())}
    slow = {tuple(map(int, key.split("."))): Fraction(factor) for key, factor in pipelines.get("slow", {}).items()}
    left = [(n, d) for n in range(pipelines["count"]) for d in range(document["devices"]) if (n, d) not in lost]
    found = []
    for n in range(pipelines["count"]):
        turns = Counter[tuple[int, ...]]()
        for stages in paths:
            i, steps = turns[tuple(stages)], []
            turns[tuple(stages)] += 1
            for s in stages:
                those = [worker for worker in left if worker[1] == where[s]]
                worker = (n, where[s]) if (n, where[s]) in left else those[i % len(those)]
                steps.append(Step(left.index(worker), s, where[s], slow.get(worker, Fraction(1))))
            found.append(steps)
    return found, len(left)
