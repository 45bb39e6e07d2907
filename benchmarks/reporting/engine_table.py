"""The engine benchmark as Markdown: a table for each group of rows, targets met or not, and growth with m."""

from __future__ import annotations

from collections.abc import Mapping

from benchmarks.cases.rows import GROUPS, GROWING, Aim, Row
from benchmarks.reporting.page import table
from benchmarks.reporting.record import Record
from pipesched.results.bound_names import bound_name

HEAD = (
    "problem",
    "published bubble",
    "zb's search",
    "value",
    "bubble",
    "gap, %",
    "proof, s",
    "proved by",
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
    """A table; a line where all is proved and nothing was published to compare with."""
    proofs = [record.proof for row, record in measured if record.status == "optimal" and not row.published]
    seconds = [proof for proof in proofs if proof is not None]
    if len(seconds) == len(measured):
        return f"All {len(measured)} proved optimal, each in {max(seconds):.1f} s or less."
    lines = [_line(row, record) for row, record in measured]
    units = {record.unit for _, record in measured} - {""}
    told = [f"Times in {' or '.join(sorted(units))}."] if units else []
    shown = []
    for column, name in enumerate(HEAD):
        cells = {line[column] for line in lines}
        if name == HEAD[-1] and len(cells) == 1 and len(lines) > 1:
            told.append(f"All {name} {cells.pop()}.")
        elif cells - {"", in_percent(0)}:  # not a column that says nothing, or of each gap that there is none
            shown.append(column)
    text = table(tuple(HEAD[column] for column in shown), [[line[column] for column in shown] for line in lines])
    return f"{' '.join(told)}\n\n{text}" if told else text


def _line(row: Row, record: Record) -> list[str]:
    if record.error:
        return [row.name, row.published, record.error, *[""] * (len(HEAD) - 3)]
    return [
        row.name,
        row.published,
        _number(record.greedy, ".10g"),
        _number(record.value, ".10g"),
        _number(record.bubble, ".4f"),
        in_percent(record.gap),
        _number(record.proof, ".1f"),
        bound_name(record.proved_by),
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


def refuted(row: Row, record: Record) -> float | None:
    """The least bubble that any schedule has, where that is proved to be above the aim."""
    if row.aim.bubble is None or record.bubble is None or not record.value or not record.bound:
        return None
    least = 1 - (1 - record.bubble) * record.value / record.bound
    return least if least > row.aim.bubble else None


def said(aim: Aim) -> str:
    """The aim in a few characters."""
    words = [] if aim.bubble is None else [f"bubble ≤ {aim.bubble:.4f}"]
    if aim.gap is not None:
        words.append("optimal" if aim.gap == 0 else f"gap ≤ {100 * aim.gap:g} %")
    if aim.seconds is not None:
        words.append(f"in {aim.seconds:g} s")
    return ", ".join(words)


def percent(share: float | None) -> str:
    """`0.28 %`, or nothing."""
    return "" if share is None else f"{in_percent(share)} %"


def in_percent(share: float | None) -> str:
    """`0.28`; more digits where two would round a gap to nothing."""
    if share is None:
        return ""
    return f"{100 * share:.2f}" if share == 0 or share >= 5e-5 else f"{100 * share:.1g}"


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
        lines.append([cap, in_percent(widest), ", ".join(cells), ratio])
    if not lines:
        return ""
    return "**Growth**: seconds to the same certified gap\n\n" + table(
        ("memory", "gap, %", "micro-batches: seconds", "largest / smallest"), lines
    )


def _aims(measured: list[tuple[Row, Record]]) -> str:
    aimed = [(row, record) for row, record in measured if reached(row, record) is not None]
    missed = [(row, record) for row, record in aimed if not reached(row, record)]
    beyond = [row.name for row, record in missed if refuted(row, record) is not None]
    others = [row.name for row, _ in missed if row.name not in beyond]
    lines = [f"Aims met: {len(aimed) - len(missed)} of {len(aimed)}."]
    lines += [f"Cannot be met: {', '.join(beyond)}."] if beyond else []
    lines += [f"Not met: {', '.join(others)}."] if others else []
    return "\n".join([*lines, _optimal(measured)])


def _optimal(measured: list[tuple[Row, Record]]) -> str:
    statuses = {group: [record.status for row, record in measured if row.group == group] for group in GROUPS}
    counts = (f"{group} {found.count('optimal')} of {len(found)}" for group, found in statuses.items() if found)
    return f"Proved optimal: {', '.join(counts)}."


def _number(number: float | None, how: str) -> str:
    return "" if number is None else format(number, how)
