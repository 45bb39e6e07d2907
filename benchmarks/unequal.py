"""Unequal micro-batches: the instance of DynaPipe's tests, and random factors.

python -m benchmarks.unequal --seconds 60 --write docs/results/unequal.md
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from random import Random

from benchmarks.reporting.suite import Case, Suite
from pipesched.files.problem_file import problem_from
from pipesched.problem.problem import Problem

# DynaPipe's tests (arXiv 2311.10418): eight layers on four devices, B = 2F, no transfers, memory ample.
_LAYERS = [4000] * 4 + [2000] * 4
_FACTORS = [1, 0.8, 1.2, 0.9, 1.1, 0.7, 1.4, 0.6]
# Random factors lie within this of 1.
_SPREAD = 0.3
_SEEDS = 3


def dynapipe() -> Iterator[Problem]:
    """Two layers a device on three placements, the order of micro-batches fixed and free."""
    pairs = [first + second for first, second in zip(_LAYERS[::2], _LAYERS[1::2], strict=True)]
    for placement, forward, chunks in (("linear", pairs, 1), ("interleaved", _LAYERS, 2), ("wave", _LAYERS, 2)):
        for order in ("fixed", "free"):
            shape = {"placement": placement} | ({"chunks": chunks} if chunks > 1 else {})
            yield problem_from(
                {
                    "name": f"DynaPipe, {placement}, {order}",
                    "devices": 4,
                    "microbatches": len(_FACTORS),
                    "times": {"forward": forward, "backward": [2 * ticks for ticks in forward]},
                    "microbatch_scale": _FACTORS,
                    "microbatch_order": order,
                }
                | shape
            )


def spread() -> Iterator[Problem]:
    """Sixteen micro-batches with random factors on four devices, weight passes apart, memory for six of the mean."""
    for seed in range(_SEEDS):
        random = Random(seed)
        scale = [round(random.uniform(1 - _SPREAD, 1 + _SPREAD), 2) for _ in range(16)]
        for order in ("fixed", "free"):
            yield problem_from(
                {
                    "name": f"p=4 m=16, factors within {_SPREAD} of 1, seed {seed}, {order}",
                    "devices": 4,
                    "microbatches": 16,
                    "times": {"forward": 10, "backward": 10, "weight": 6, "transfer": 1},
                    "memory": {"capacity": 6},
                    "microbatch_scale": scale,
                    "microbatch_order": order,
                }
            )


def cases(_: int) -> Iterator[Case]:
    """All of them."""
    yield from (Case(problem, "DynaPipe") for problem in dynapipe())
    yield from (Case(problem, "random factors") for problem in spread())


SUITE = Suite("unequal", __doc__, {"unequal": cases}, every=True)

if __name__ == "__main__":
    sys.exit(SUITE.main())
