"""The HTML report of a measured run: measured and predicted times, the best order, and why passes started late."""

from __future__ import annotations

from collections.abc import Sequence

from commands.reports.measured.late_starts import (
    ASSUMED,
    DEVICES,
    assumed_rows,
    device_rows,
    picture,
    sentences,
    step_text,
)
from commands.shared.tables import Column
from pipesched.measurement.comparison import Comparison
from pipesched.measurement.late_starts import LateStarts
from pipesched.results.solution import Solution
from pipesched.schedule.timeline import Timeline
from plots.html.parts import Paragraph, Part, Picture, Points, Schedules, Section, Table
from plots.html.report import capitalised, report


def late_starts_report(
    name: str, times: Comparison, found: LateStarts, order: Timeline, best: Solution | None, comparison: Sequence[str]
) -> str:
    """Return the HTML page of a measured run.

    It has measured and predicted times, why passes started late, and a chart of orders. `times` are compared times,
    `found` the late starts with their causes. `order` is the measured order with predicted times; `comparison` are
    sentences that compare it with the best order (`best`, None: not searched).
    """
    shows = "How much later than predicted each pass started, and what the delay is made of"
    sections = [
        Section(
            "What the assumptions cost",
            [
                Points([f"{capitalised(one)}." for one in sentences(found)]),
                _table(ASSUMED, assumed_rows(found), f"Milliseconds; {step_text(found)}"),
                Picture(picture(name, found, "svg"), shows),
            ],
        ),
        Section("Late starts", [_table(DEVICES, device_rows(found), "Milliseconds, mean of each device's passes")]),
        Section("The order with these times", _orders(order, best)),
    ]
    ms = f"{1000 * times.measured:.3f} ms measured, {1000 * times.predicted:.3f} ms predicted"
    if comparison:
        lines = [Paragraph(f"{capitalised(one).rstrip('.')}.") for one in comparison]
        sections.insert(0, Section("Measured, this order, the best one", lines))
    return report(f"{name}: predicted and measured", f"{times.steps} steps", ms, sections)


def _orders(order: Timeline, best: Solution | None) -> list[Part]:
    named = [("this order", order)]
    if best is not None and best.timeline is not None:
        named.append(("the best order found", best.timeline))
    return [Schedules(named)]


def _table(columns: Sequence[Column], rows: Sequence[Sequence[str]], caption: str) -> Table:
    headers = [(column.header.replace("-\n", "-").replace("\n", " "), column.numeric) for column in columns]
    return Table(headers, rows, caption)
