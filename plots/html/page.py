"""An HTML page that shows a schedule in the interactive chart, and needs no network."""

from __future__ import annotations

from collections.abc import Mapping

from pipesched.schedule.timeline import Timeline
from plots.html import assets
from plots.html.document import document
from plots.html.packed import packed
from plots.html.parts import text


def page(timeline: Timeline, title: str, caption: str) -> str:
    """Return the text of the page; `title` and `caption` are plain text."""
    head = f"<h1>{text(title)}</h1><p>{text(caption)}</p>"
    return whole_page(
        title, f'<main>{head}<div id="chart"></div></main>', {"chart": packed(document(timeline))}, "page.js"
    )


def whole_page(title: str, body: str, documents: Mapping[str, str], start: str) -> str:
    """Return the text of a page with its scripts, styles and packed documents (by name, for the page's script).

    `body` is HTML; `start` is the file in `page/` with the script that runs.
    """
    data = "".join(
        f'<script type="application/octet-stream" id="data-{name}">{content}</script>\n'
        for name, content in documents.items()
    )
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{text(title)}</title>\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<style>{assets.style()}\n{assets.page_style()}</style></head>\n<body>{body}\n"
        "<noscript>The charts of this page are drawn by its script.</noscript>\n"
        f"{data}<script>{assets.script()}</script>\n<script>{assets.page_script(start)}</script>\n</body></html>\n"
    )
