"""The engine's benchmark as markdown: a table for each group of rows, what was aimed at, and growth with m."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from benchmarks.page import table
from benchmarks.record import Record
from benchmarks.rows import GROUPS, GROWING, Row

HEAD = (
    "problem",
    "published bubble",
    "zb's search",
    "value",
    "bubble",
    "bound",
    "gap",
    "first",
    "best",
    "proof",
    "proved by",
    "aim",
)


def markdown(rows: tuple[Row, ...], records: Mapping[str, Record], machine: str) -> str:
    """Every group that has results."""
    parts = [machine]
    for group, title in GROUPS.items():
        measured = [(row, records[row.name]) for row in rows if row.group == group and row.name in records]
        if measured:
            parts += [f"**{title[0].upper()}{title[1:]}**", _group(measured)]
    growth = _growth(records)
    if growth:
        parts.append(growth)
    every = [(row, records[row.name]) for row in rows if row.name in records]
    parts.append(_aims(every))
    return "\n\n".join(parts)


def _group(measured: list[tuple[Row, Record]]) -> str:
    """The plain column is there where it was measured."""
    plain = any(record.plain_gap is not None for _, record in measured)
    head = (*HEAD[:7], "plain gap", *HEAD[7:]) if plain else HEAD
    return table(head, [_line(row, record, plain) for row, record in measured])


def _line(row: Row, record: Record, plain: bool) -> list[str]:
    if record.error:
        return [row.name, row.published, record.error, *[""] * (len(HEAD) - 4 + plain), "failed"]
    met = reached(row, record)
    return [
        row.name,
        row.published,
        _number(record.greedy, ".10g"),
        _number(record.value, ".10g") + (f" {record.unit}" if record.unit else ""),
        _number(record.bubble, ".4f"),
        _number(record.bound, ".10g"),
        percent(record.gap),
        *([percent(record.plain_gap)] if plain else []),
        *(_number(moment, ".1f") for moment in (record.first, record.best, record.proof)),
        record.proved_by,
        "" if met is None else f"{'met' if met else '**not met**'}: {said(row)}",
    ]


def reached(row: Row, record: Record) -> bool | None:
    """Whether a row reached its aim; None where it has none."""
    aim = row.aim
    if aim.bubble is None and aim.gap is None:
        return None
    good = not record.error
    if aim.bubble is not None:
        good = good and record.bubble is not None and record.bubble <= aim.bubble
    if aim.gap is not None:
        at = record.seconds_to(aim.gap)
        good = good and at is not None and (aim.seconds is None or at <= aim.seconds)
    return good


def said(row: Row) -> str:
    """The aim in a few characters."""
    words = [] if row.aim.bubble is None else [f"bubble ≤ {row.aim.bubble:.4f}"]
    if row.aim.gap is not None:
        words.append("optimal" if row.aim.gap == 0 else f"gap ≤ {100 * row.aim.gap:g} %")
    if row.aim.seconds is not None:
        words.append(f"in {row.aim.seconds:g} s")
    return ", ".join(words)


def percent(share: float | None) -> str:
    """`0.28 %`; more digits where two would round a gap to nothing."""
    if share is None:
        return ""
    return f"{100 * share:.2f} %" if share == 0 or share >= 5e-5 else f"{100 * share:.1g} %"


def _growth(records: Mapping[str, Record]) -> str:
    """Seconds to one certified gap, the widest that any m of a cap ended with, and their ratio to the smallest m's."""
    lines = []
    for cap in ("1p", "2p", "0.5p"):
        found = {m: records[f"growth-{cap}-m{m}"] for m in GROWING if f"growth-{cap}-m{m}" in records}
        gaps = [record.gap for record in found.values() if record.gap is not None]
        if len(found) < 2 or len(gaps) < len(found):
            continue
        widest = max(gaps)
        moments = [record.seconds_to(widest) for record in found.values()]
        seconds = [moment for moment in moments if moment is not None]
        cells = [f"{m}: {s:.1f}" for m, s in zip(found, seconds, strict=True)]
        ratio = f"{seconds[-1] / seconds[0]:.2f}" if seconds[0] else ""
        lines.append([cap, percent(widest), ", ".join(cells), ratio])
    if not lines:
        return ""
    return "**Growth**: seconds to the same certified gap\n\n" + table(
        ("memory", "gap", "micro-batches: seconds", "largest / smallest"), lines
    )


def _aims(measured: list[tuple[Row, Record]]) -> str:
    met = [(row, reached(row, record)) for row, record in measured]
    counted = [good for _, good in met if good is not None]
    missed = [row.name for row, good in met if good is False]
    text = f"Aims met: {sum(counted)} of {len(counted)}."
    optimal = list(_optimal(measured))
    return "\n".join([text, *(["Not met: " + ", ".join(missed) + "."] if missed else []), *optimal])


def _optimal(measured: list[tuple[Row, Record]]) -> Iterator[str]:
    for group in GROUPS:
        statuses = [record.status for row, record in measured if row.group == group]
        if statuses:
            yield f"Proved optimal, {group}: {statuses.count('optimal')} of {len(statuses)}."


def _number(number: float | None, how: str) -> str:
    return "" if number is None else format(number, how)
