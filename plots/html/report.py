"""A report as one HTML page that needs no network: verdict, sections, and their charts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pipesched.schedule.timeline import Timeline
from plots.html.document import document
from plots.html.packed import packed
from plots.html.page import whole_page
from plots.html.parts import Course, Paragraph, Part, Schedules, Section, text

MOST = 3_000_000  # letters that all schedules of a report take together; those beyond are left out, the first never


def report(title: str, subtitle: str, verdict: str, sections: Sequence[Section]) -> str:
    """Return the text of the page; all arguments are plain text."""
    documents: dict[str, str] = {}
    body = "".join(_section(section, documents) for section in sections)
    links = "".join(f'<a href="#{_name(one.title)}">{text(one.title)}</a>' for one in sections)
    head = (
        f"<header><h1>{text(title)}</h1><button type=button id=theme hidden></button>"
        f"<p class=quiet>{text(subtitle)}</p></header>"
        f'<p class=verdict role=status>{text(verdict)}</p><nav aria-label="Sections">{links}</nav>'
    )
    return whole_page(title, f"<main>{head}{body}</main>", documents, "report.js")


def capitalised(sentence: str) -> str:
    """Return a sentence with its first letter in upper case."""
    return sentence[:1].upper() + sentence[1:]


def _section(section: Section, documents: dict[str, str]) -> str:
    parts = "".join(part.html() for asked in section.parts for part in _with_data(asked, documents))
    return f'<section id="{_name(section.title)}"><h2>{text(section.title)}</h2>{parts}</section>\n'


def _with_data(part: Part, documents: dict[str, str]) -> Iterator[Part]:
    """Yield the part, after adding its chart's data to `documents`, and a note of what was left out."""
    yield part
    if isinstance(part, Course):
        documents["course"] = packed(part.document())
    if isinstance(part, Schedules):
        fitting, left_out = _packed_within(part.timelines)
        names = []
        for number, (name, data) in enumerate(fitting):
            documents[f"schedule-{number}"] = data
            names.append(name)
        documents["schedules"] = packed(names)
        if left_out:
            yield Paragraph(f"Left out, to keep this page small: {', '.join(left_out)}.")


def _packed_within(timelines: Sequence[tuple[str, Timeline]]) -> tuple[list[tuple[str, str]], list[str]]:
    """Return (name, packed document) of the timelines that fit the page, and the names of the others."""
    fitting: list[tuple[str, str]] = []
    left_out: list[str] = []
    size = 0
    for name, timeline in timelines:
        if left_out or (fitting and size + len(fitting[-1][1]) > MOST):
            left_out.append(name)
            continue
        fitting.append((name, packed(document(timeline))))
        size += len(fitting[-1][1])
    return fitting, left_out


def _name(title: str) -> str:
    """Return a title as an anchor name."""
    return "".join(letter if letter.isalnum() else "-" for letter in title.lower())
