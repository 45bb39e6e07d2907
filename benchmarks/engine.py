"""Problems of the Zero Bubble papers: the bubble rates they give, and what the engine finds and proves.

    python -m benchmarks.engine --seconds 60 --write docs/results/published.md
    python -m benchmarks.engine --problems "v-*" --seconds 300

Results are kept in a file after every problem; --resume runs only those that are not there yet.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from fractions import Fraction

from benchmarks.cases.profiles import PROFILES, uneven_8, unit, v_shape
from benchmarks.reporting.suite import Case, Suite


def cases(_: int) -> Iterator[Case]:
    """By kind: memory for one or two activations a stage or less, the V placement, and problems of units and others."""
    for group, times in (("1p", 1), ("2p", 2)):
        for profile in PROFILES:
            name = f"zb-{profile.model}-m{profile.m}-{group}"
            rate = f"bubble {profile.published[times - 1]}"
            yield Case(profile.problem(times * profile.p, "span", name), group, rate)
            yield Case(profile.problem(times * profile.p, "makespan", f"{name}-makespan"), f"{group}, makespan")
    # What the paper's search gives there, run with its authors' code.
    for cap, rate in ((".25", ".827"), (".5", ".762"), (".625", ".707"), (".75", ".619"), (".875", ".455")):
        first = PROFILES[0]
        problem = first.problem(Fraction(cap) * first.p, "span", f"zb-1.5b-m24-0{cap}p")
        yield Case(problem, "below 1p", f"bubble {rate}")
    # ZBV, V-Half and V-Min on the same profile (arXiv 2405.15362).
    rates = {48: (".0697", ".1847", ".3300"), 64: (".0533", ".1453", ".3008"), 128: (".0274", ".0784", ".2512")}
    for m, each in rates.items():
        for memory, rate in zip(("full", "half", "third"), each, strict=True):
            yield Case(v_shape(m, memory), "V", f"bubble {rate}")
    yield Case(uneven_8(), "uneven")
    for capacity in (4, 5, 6, 8):
        name = f"small-1.5b-p4-m8-cap{capacity}"
        yield Case(PROFILES[0].problem(capacity, "span", name, devices=4, microbatches=8), "small")
    for p, m in ((2, 256), (4, 8), (4, 16), (8, 24), (8, 64), (16, 48), (16, 128), (32, 96), (32, 256)):
        for objective in ("makespan", "span"):
            yield Case(unit(p, m, objective, name=f"unit-p{p}-m{m}-{objective}"), "unit", seconds=15)
    for cap in ("1", "2", "0.5"):
        for m in (64, 256, 1024, 4096):
            own = PROFILES[2]
            problem = own.problem(Fraction(cap) * own.p, "span", f"growth-{cap}p-m{m}", microbatches=m)
            yield Case(problem, "growth")


SUITE = Suite("engine", __doc__, {"published": cases})

if __name__ == "__main__":
    sys.exit(SUITE.main())
