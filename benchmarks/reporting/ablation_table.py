"""The ablation as Markdown: what the whole engine does, and what is lost without each part, problem by problem."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from benchmarks.cases.engine_parts import Part
from benchmarks.reporting.engine_table import percent
from benchmarks.reporting.page import table
from benchmarks.reporting.record import Record

WHOLE = "whole engine"
PLAIN = "plain CP-SAT"
# Of the seconds of a solve, what a part takes at least where it is left out; and the most problems of a part.
_LEAST_SHARE, _MOST = 0.01, 3

# By problem, then by variant of the engine.
Records = Mapping[str, Mapping[str, Record]]


def share(part: Part, whole: Record) -> float:
    """Of the seconds of a solve by the whole engine, those that a part took; 0 where it did not run."""
    taken = sum(seconds for name, seconds in whole.parts if name in part.takes)
    return min(1.0, taken / whole.wall) if whole.wall else 0.0


def left_out_on(part: Part, wholes: Mapping[str, Record]) -> list[str]:
    """The problems on which to leave a part out: where its bound is the one that proves, then where it takes most."""

    def rank(name: str) -> tuple[bool, float]:
        return wholes[name].proved_by in part.kinds, share(part, wholes[name])

    tells = [name for name in wholes if rank(name)[0] or rank(name)[1] >= _LEAST_SHARE]
    return sorted(tells, key=rank, reverse=True)[:_MOST]


def markdown(parts: Sequence[Part], records: Records, described: str) -> str:
    """What the whole engine does, then a line for each part and problem, then the parts that do nothing on any."""
    head = ("part left out", "on", "its share of the time", "gap with it", "gap without", "value above", "bound below")
    lines = [line for part in parts for line in _lines(part, records)]
    idle = [part.name for part in parts if not any(part.variant in found for found in records.values())]
    told = [
        described,
        table(("problem", WHOLE, "proved by", PLAIN), [_whole(name, found) for name, found in records.items()]),
        "*Value above* and *bound below* are what is lost without the part, against the value and the bound with it.",
        table(head, lines),
    ]
    if idle:
        told.append(f"On none of these problems do these take a hundredth of the time or prove: {', '.join(idle)}.")
    return "\n\n".join(told)


def cell(found: Record | None) -> str:
    """The gap left, or how soon it was closed."""
    if found is None:
        return ""
    if found.error:
        return found.error
    if found.gap is None:
        return "no schedule"
    return percent(found.gap) if found.proof is None else f"none after {found.proof:.1f} s"


def _whole(name: str, found: Mapping[str, Record]) -> list[str]:
    whole = found.get(WHOLE)
    return [name, cell(whole), whole.proved_by if whole else "", cell(found.get(PLAIN))]


def _lines(part: Part, records: Records) -> Iterator[list[str]]:
    named = False
    for name, found in records.items():
        whole, without = found.get(WHOLE), found.get(part.variant)
        if whole is not None and without is not None:
            took = f"{100 * share(part, whole):.0f} %" if part.takes else ""
            yield ["" if named else part.name, name, took, cell(whole), cell(without), *_lost(whole, without)]
            named = True


def _lost(whole: Record, without: Record) -> list[str]:
    above = "" if not whole.value or without.value is None else _signed(without.value / whole.value - 1)
    return [above, _signed(1 - without.bound / whole.bound) if whole.bound else ""]


def _signed(lost: float) -> str:
    return f"-{percent(-lost)}" if lost < 0 else percent(lost)
