"""Files to download: a schedule as its file, as pictures, and in the formats of other programs."""

from __future__ import annotations

import io
import zipfile
from typing import Literal

from heuristics.catalogue import HEURISTICS
from pipesched.errors import BadInput, did_you_mean
from pipesched.files.exact_numbers import read_json
from pipesched.files.schedule_file import ScheduleFile, schedule_from, to_text
from pipesched.problem.formatting import amount
from pipesched.schedule.metrics import measure
from pipesched.schedule.timeline import Timeline
from plots.catalogue import PLOTS
from plots.html.page import page
from plots.render import render_plot
from runtime.exporters.catalogue import EXPORTERS
from solver.published import candidate
from web.problem_texts import document_of, problem_of
from web.settings import Settings
from web.work.channel import Channel

_PICTURES: tuple[Literal["png", "svg"], ...] = ("png", "svg")
_SCHEDULE, _HTML = "schedule.json", "schedule.html"


def formats() -> list[dict[str, str]]:
    """Return the formats for the page's download menu, each with `name`, `what` (its description) and `group`."""
    listed = [
        {"name": _SCHEDULE, "what": "schedule file, which every pipesched command reads", "group": "Schedule"},
        {"name": _HTML, "what": "page with an interactive chart", "group": "Pictures"},
    ]
    for plot in PLOTS:
        listed += [{"name": f"{plot.name}.{kind}", "what": plot.title, "group": "Pictures"} for kind in _PICTURES]
    listed += [{"name": one.name, "what": one.description, "group": "Other programs"} for one in EXPORTERS]
    return listed


def of_published(channel: Channel, text: str, schedule: str, name: str, settings: Settings) -> None:
    """Send a file of a published schedule on the problem in `text`: first "notes", a list of texts, then "bytes".

    The latter is (file name, content). `name` is a file name, such as `gantt.svg`, or an export format, whose files are
    one archive if there are several. `BadInput` for a wrong problem or an unknown schedule or format, and if the
    schedule does not apply, or the format cannot hold it.
    """
    problem = problem_of(document_of(text, settings), settings)
    found = candidate(problem, HEURISTICS[schedule])
    if found.timeline is None:
        raise BadInput(f"{schedule}: {found.reason}")
    _send(channel, ScheduleFile(found.timeline), name)


def of_file(channel: Channel, text: str, name: str) -> None:
    """Send a file of a schedule that a solve found, given as the text of its schedule file: "notes", then "bytes".

    The latter is (file name, content). `name` is a file name, such as `gantt.svg`, or an export format, whose files are
    one archive if there are several. `BadInput` if there is no such format, or it cannot hold the schedule.
    """
    _send(channel, schedule_from(read_json(text, _SCHEDULE), _SCHEDULE), name)


def _send(channel: Channel, file: ScheduleFile, name: str) -> None:
    timeline = file.timeline
    channel.send("notes", [])
    stem, _, ending = name.rpartition(".")
    if name == _SCHEDULE:
        channel.send("bytes", (_SCHEDULE, to_text(file).encode()))
    elif name == _HTML:
        title, caption = _titles(file)
        channel.send("bytes", (_HTML, page(timeline, title, caption).encode()))
    elif ending in _PICTURES:
        plot = PLOTS[stem]
        title = "\n".join(_titles(file))
        kind: Literal["png", "svg"] = "png" if ending == "png" else "svg"
        channel.send("bytes", (name, render_plot(timeline, plot, kind, title)))
    else:
        _send_export(channel, timeline, name)


def _titles(file: ScheduleFile) -> tuple[str, str]:
    timeline, problem = file.timeline, file.timeline.problem
    metrics = measure(timeline)
    caption = f"makespan {amount(problem, metrics.makespan_ticks)}, span {amount(problem, metrics.span_ticks)}"
    return f"{problem.name} · {timeline.schedule.name}", caption


def _send_export(channel: Channel, timeline: Timeline, name: str) -> None:
    """Send the text of a format (several files as an archive), with the format's warnings.

    `BadInput` for an unknown format.
    """
    if name not in EXPORTERS.names():
        known = [one["name"] for one in formats()]
        raise BadInput(f"found no format {name!r}; known: {', '.join(known)}{did_you_mean(name, known)}")
    exporter = EXPORTERS[name]
    texts = exporter.export(timeline)
    channel.send("notes", [*exporter.warnings(timeline), *([exporter.proof(timeline)] if exporter.proof else [])])
    if len(texts) == 1:
        channel.send("bytes", (f"schedule{exporter.suffix}", next(iter(texts.values())).encode()))
        return
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as zipped:
        for suffix, text in texts.items():
            zipped.writestr(zipfile.ZipInfo(f"schedule{suffix}"), text, zipfile.ZIP_DEFLATED)
    channel.send("bytes", (f"schedule.{name}.zip", archive.getvalue()))
