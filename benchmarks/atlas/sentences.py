"""Sentences about the maps of the atlas, whose every number is computed from the rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from fractions import Fraction
from statistics import fmean
from typing import TypeVar

from benchmarks.atlas.grid import LENGTHS, MEMORIES, PLACEMENTS, RATIOS, TRANSFERS
from benchmarks.atlas.row import Row

_SPLIT = ("with a backward that splits", True), ("without", False)
Value = TypeVar("Value", bound=Hashable)


def sentences(rows: Sequence[Row]) -> list[str]:
    """Ten sentences: how much is proved, how good published schedules are, and how that depends on each axis."""
    return [_proved(rows), _published(rows), _placements(rows), *_memories(rows), _lengths(rows), _transfers(rows)]


def _proved(rows: Sequence[Row]) -> str:
    proved = [row for row in rows if row.proved]
    trusted = sum(row.trusted for row in proved)
    open_ones = [row for row in rows if not row.proved and row.value]
    widest = max((1 - Fraction(row.lower_bound, row.value or 1) for row in open_ones), default=None)
    gap = "" if widest is None else f"; where it is open the gap is at most {_percent(widest)}"
    unchecked = f", {trusted} of them by an exhaustive search that the check does not repeat" if trusted else ""
    return f"In {_of(len(proved), len(rows))} the optimum over the three placements is proved{unchecked}{gap}."


def _published(rows: Sequence[Row]) -> str:
    fitting = _fitting(rows)
    optimal = sum(row.excess == 0 and row.proved for row in fitting)
    within = {most: sum((row.excess or 0) <= most / 100 for row in fitting) for most in (1, 5)}
    worst = max(fitting, key=lambda row: row.excess or 0)
    return (
        f"A published schedule fits in {_of(len(fitting), len(rows))}: the best one is proved optimal in {optimal}, "
        f"takes at most 1 % longer than the best order in {within[1]} and at most 5 % in {within[5]}; the farthest is "
        f"{worst.fitting[0].schedule}, {_percent(worst.excess or 0)} longer ({place(worst)})."
    )


def _placements(rows: Sequence[Row]) -> str:
    counts = Counter(name for row in rows for name in row.placements)
    alone = Counter(row.placements[0] for row in rows if len(row.placements) == 1)
    parts = [f"{name} in {counts[name]} (alone in {alone[name]})" for name in PLACEMENTS]
    return f"The best order is on {', on '.join(parts)} of {len(rows)} cells."


def _memories(rows: Sequence[Row]) -> Iterator[str]:
    for memory, own in _groups(rows, lambda row: row.point.memory, MEMORIES):
        fitting = _fitting(own)
        start = f"With {_share(memory)} of 1F1B's memory "
        if not fitting:
            yield f"{start}no published schedule fits in any of {len(own)} cells."
            continue
        best = Counter(name for row in fitting for name in winners(row))
        listed = ", ".join(f"{name} ({count})" for name, count in best.most_common(3))
        optimal = sum(row.excess == 0 and row.proved for row in fitting)
        yield (
            f"{start}one fits in {_of(len(fitting), len(own))}, and is best as {listed}: proved optimal in {optimal}, "
            f"{_percent(_mean(fitting))} longer than the best order in the mean."
        )


def _lengths(rows: Sequence[Row]) -> str:
    parts = [
        f"{_percent(_mean(_fitting(own)))} at m = {length}p"
        for length, own in _groups(rows, lambda row: row.point.family.length, LENGTHS)
    ]
    by_split = ((text, [row for row in rows if bool(RATIOS[row.point.family.ratio][2]) is on]) for text, on in _SPLIT)
    fits = [f"in {_of(len(_fitting(own)), len(own))} {text}" for text, own in by_split if own]
    return (
        f"By micro-batches, the best published schedule that fits takes longer than the best order in the mean by "
        f"{', '.join(parts)}; one fits {' and '.join(fits)}."
    )


def _transfers(rows: Sequence[Row]) -> str:
    parts = [
        f"{sum(row.excess == 0 for row in own)} of {len(own)} at {float(transfer):g} F ({_percent(_mean(own))} longer "
        "in the mean)"
        for transfer, own in _groups(_fitting(rows), lambda row: row.point.family.transfer, TRANSFERS)
    ]
    return f"By transfer, the best published schedule that fits is as good as the best order in {', '.join(parts)}."


def winners(row: Row) -> list[str]:
    """The published schedules that are best in a cell, several where they take equally long, each once."""
    fitting = row.fitting
    return sorted({one.schedule for one in fitting if one.value == fitting[0].value})


def place(row: Row) -> str:
    """A cell in words."""
    family = row.point.family
    return (
        f"p = {family.devices}, m = {family.length}p, memory {_share(row.point.memory)}, times {family.ratio}, "
        f"transfer {float(family.transfer):g} F"
    )


def _groups(
    rows: Sequence[Row], of: Callable[[Row], Value], order: Sequence[Value]
) -> Iterator[tuple[Value, list[Row]]]:
    """The rows by a property, where there are any."""
    for value in order:
        own = [row for row in rows if of(row) == value]
        if own:
            yield value, own


def _fitting(rows: Sequence[Row]) -> list[Row]:
    return [row for row in rows if row.excess is not None]


def _mean(rows: Sequence[Row]) -> float:
    return fmean(row.excess or 0 for row in rows) if rows else 0.0


def _of(part: int, whole: int) -> str:
    return f"{part} of {whole} cells ({100 * part / whole:.0f} %)"


def _percent(share: float | Fraction) -> str:
    return f"{100 * float(share):.1f} %"


def _share(memory: Fraction) -> str:
    return {Fraction(1, 4): "¼", Fraction(1, 2): "½", Fraction(3, 4): "¾"}.get(memory, str(memory))
