"""The rows of the engine benchmark as data: each a problem, what others published for it, and our target."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from fractions import Fraction
from functools import cache

from benchmarks.cases.profiles import PROFILES, uneven_8, unit, v_shape
from pipesched.errors import BadInput, did_you_mean
from pipesched.problem.problem import Problem

# What each group of rows shows, in the order of the table.
GROUPS = {
    "1p": "span, one activation a stage",
    "2p": "span, two activations a stage",
    "makespan": "the same 24 problems, makespan",
    "caps": "span, below one activation a stage (1.5B, 8 devices, 24 micro-batches)",
    "v": "span, V placement on 16 devices (6.2B)",
    "uneven": "span, a measured pipeline of unequal stages",
    "small": "span, small enough to be solved by hand-made tools (1.5B, 4 devices, 8 micro-batches)",
    "unit": "unit costs, one activation a stage",
    "growth": "span, 1.5B on 8 devices, growing number of micro-batches",
}


GROWING = (64, 256, 1024, 4096)


@dataclass(frozen=True)
class Aim:
    """What a row should reach: bubble and certified gap at most, `optimal` within so many seconds."""

    bubble: float | None = None
    gap: float | None = None
    seconds: float | None = None


@dataclass(frozen=True)
class Row:
    """One problem of the benchmark; `published` is the bubble rate of the best published schedule, as printed.

    `most_seconds` caps the time of a row whose aim is to be fast.
    """

    name: str
    group: str
    problem: Problem
    aim: Aim
    published: str = ""
    most_seconds: float | None = None


@cache
def rows() -> tuple[Row, ...]:
    """Every row, group by group."""
    found = (
        *_profiles(),
        *_caps(),
        *_v(),
        Row("uneven-8", "uneven", uneven_8(), Aim(gap=0.0)),
        *_small(),
        *_unit(),
        *_growth(),
    )
    return tuple(row for group in GROUPS for row in found if row.group == group)


def select(patterns: str | None) -> tuple[Row, ...]:
    """The rows whose name or group fits one of the comma-separated patterns (`v-*`, `caps`); all of them for None.

    `BadInput` for a pattern that fits none.
    """
    every = rows()
    if patterns is None:
        return every
    wanted = [pattern.strip() for pattern in patterns.split(",")]
    for pattern in wanted:
        if not any(_fits(row, pattern) for row in every):
            near = did_you_mean(pattern, [*GROUPS, *(row.name for row in every)])
            raise BadInput(
                f"--rows: found {pattern!r}; allowed: a group ({', '.join(GROUPS)}) or a row's name (see --list), "
                f"* for anything{near}"
            )
    return tuple(row for row in every if any(_fits(row, pattern) for pattern in wanted))


def _fits(row: Row, pattern: str) -> bool:
    return row.group == pattern or fnmatchcase(row.name, pattern)


def _profiles() -> Iterator[Row]:
    for profile in PROFILES:
        for index, group in enumerate(("1p", "2p")):
            name, published = f"zb-{profile.model}-m{profile.m}-{group}", profile.published[index]
            capacity = (index + 1) * profile.p
            if group == "1p":
                aim = Aim(gap=0.0, seconds=5)
            else:  # a published rate has four decimals; half of the last one is rounding
                aim = Aim(bubble=float(published) + 0.00005, gap=0.0 if name == "zb-1.5b-m24-2p" else 0.003)
            yield Row(name, group, profile.problem(capacity, "span", name), aim, published)
            name += "-makespan"
            yield Row(name, "makespan", profile.problem(capacity, "makespan", name), Aim(gap=0.003))


def _caps() -> Iterator[Row]:
    """Published: what the paper's search gives there, run with its authors' code."""
    published = {".25": ".827", ".5": ".762", ".625": ".707", ".75": ".619", ".875": ".455"}
    reach = {".25": 0.710, ".5": 0.445, ".625": 0.350, ".75": 0.265, ".875": 0.210}
    profile = PROFILES[0]
    for cap, greedy in published.items():
        name = f"zb-1.5b-m24-0{cap}p"
        problem = profile.problem(Fraction(cap) * profile.p, "span", name)
        yield Row(name, "caps", problem, Aim(bubble=reach[cap], gap=0.05), greedy)


def _v() -> Iterator[Row]:
    """Published: ZBV, V-Half and V-Min on the same profile (arXiv 2405.15362)."""
    published = {48: (".0697", ".1847", ".3300"), 64: (".0533", ".1453", ".3008"), 128: (".0274", ".0784", ".2512")}
    reach = {48: (0.040, 0.120, 0.265), 64: (None, None, None), 128: (0.016, 0.050, 0.225)}
    gaps = (0.03, 0.06, 0.08)
    for m, rates in published.items():
        for memory, rate, bubble, gap in zip(("full", "half", "third"), rates, reach[m], gaps, strict=True):
            name = f"v-6.2b-m{m}-{memory}"
            yield Row(name, "v", v_shape(m, memory, name), Aim(bubble=bubble, gap=gap), rate)


def _small() -> Iterator[Row]:
    for capacity in (4, 5, 6, 8):
        name = f"small-1.5b-p4-m8-cap{capacity}"
        problem = PROFILES[0].problem(capacity, "span", name, devices=4, microbatches=8)
        yield Row(name, "small", problem, Aim(gap=0.0))


def _unit() -> Iterator[Row]:
    for p, m in ((2, 256), (4, 8), (4, 16), (8, 24), (8, 64), (16, 48), (16, 128), (32, 96), (32, 256)):
        for objective in ("makespan", "span"):
            name = f"unit-p{p}-m{m}-{objective}"
            yield Row(name, "unit", unit(p, m, objective, name=name), Aim(gap=0.0, seconds=5), most_seconds=15)


def _growth() -> Iterator[Row]:
    profile = PROFILES[2]
    for cap in ("1", "2", "0.5"):
        for m in GROWING:
            name = f"growth-{cap}p-m{m}"
            problem = profile.problem(Fraction(cap) * profile.p, "span", name, microbatches=m)
            yield Row(name, "growth", problem, Aim())
