"""The ablation as Markdown: what the whole engine does, and what is lost without each part, problem by problem."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from benchmarks.cases.engine_parts import Part
from benchmarks.reporting.engine_table import in_percent, percent
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
    """What the whole engine does, then each part on the problem where it is missed most, then those missed on none."""
    head = ("part left out", "on", "gap without", "value above, %", "bound below, %")
    numbers = {name: str(number) for number, name in enumerate(records, 1)}
    lines = [[part, numbers[on], *lost] for one in parts for part, on, *lost in _most_missed(one, records)]
    idle = [part.name for part in parts if not any(part.variant in found for found in records.values())]
    told = [
        described,
        table(
            ("", "problem", WHOLE, PLAIN), [[numbers[name], *_whole(name, found)] for name, found in records.items()]
        ),
        "Each part on the problem, of those it was left out on, where most is lost without it. *Value above* and "
        "*bound below* are what is lost, against the value and the bound with it.",
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
    return percent(found.gap) if found.proof is None else f"0 in {found.proof:.1f} s"


def _whole(name: str, found: Mapping[str, Record]) -> list[str]:
    return [name, cell(found.get(WHOLE)), cell(found.get(PLAIN))]


def _most_missed(part: Part, records: Records) -> Iterator[list[str]]:
    """The problem where value and bound together lose most; nothing where the part was left out on none."""
    both = [
        (name, found[WHOLE], found[part.variant])
        for name, found in records.items()
        if WHOLE in found and part.variant in found
    ]
    if both:
        name, whole, without = max(both, key=lambda one: sum(lost for lost in _lost(*one[1:]) if lost is not None))
        lost = ["" if share is None else _signed(share) for share in _lost(whole, without)]
        yield [part.name, name, cell(without), *lost]


def _lost(whole: Record, without: Record) -> tuple[float | None, float | None]:
    """How far the value is above that of the whole engine, and the bound below."""
    above = None if not whole.value or without.value is None else without.value / whole.value - 1
    return above, 1 - without.bound / whole.bound if whole.bound else None


def _signed(lost: float) -> str:
    return f"-{in_percent(-lost)}" if lost < 0 else in_percent(lost)
