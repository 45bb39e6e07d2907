"""Growth with devices and micro-batches of the time to a gap of 1 %: linear and V placement at 1p and .6p.

    python -m benchmarks.growth --seconds 15 --write docs/results/growth.md

Every problem is one solve that stops at a gap of 1 %, or after --seconds: 60 of them take at most 60 times as long.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from itertools import product

from benchmarks.reporting.suite import Case, Suite
from pipesched.files.problem_file import problem_from
from pipesched.problem.problem import Problem

FAMILIES = {
    f"{short}, {named}": (placement, Fraction(memory))
    for placement, short in (("linear", "linear"), ("v-shape", "V"))
    for named, memory in (("1p", "1"), (".6p", ".6"))
}
# GPT 1.5B on 8 devices, of arXiv 2401.10241; a V's stage takes half as long.
_TIMES = {"forward": "18.522", "backward": "18.086", "weight": "9.337", "transfer": "0.601"}


def problem_of(family: str, devices: int, microbatches: int) -> Problem:
    """Of a placement and the memory of a device in activations of a device's layers, as a share of p."""
    placement, memory = FAMILIES[family]
    chunks = 2 if placement == "v-shape" else 1
    times = {kind: Fraction(Decimal(time)) for kind, time in _TIMES.items()}
    document = {
        "name": f"{family} p={devices} m={microbatches}",
        "devices": devices,
        "microbatches": microbatches,
        "placement": placement,
        "times": {kind: time if kind == "transfer" else time / chunks for kind, time in times.items()},
        "memory": {"capacity": memory * devices, "activation": Fraction(1, chunks)},
        "objective": "span",
    }
    return problem_from(document, "benchmark growth")


def cases(_: int) -> Iterator[Case]:
    """Up to 786,432 passes."""
    for family, p, length in product(FAMILIES, (4, 8, 16, 32, 64), (2, 8, 32)):
        yield Case(problem_of(family, p, length * p), family)


SUITE = Suite("growth", __doc__, {"growth": cases}, seconds=15, gap=0.01)

if __name__ == "__main__":
    sys.exit(SUITE.main())
