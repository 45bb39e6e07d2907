"""The text of an HTML report as its reader sees it: a line for each paragraph, heading and row, with ` | ` between
cells."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path

_LINES = {"p", "h1", "h2", "li", "tr", "caption", "pre", "section", "a", "button", "summary"}
_CELLS = {"th", "td"}
_UNSEEN = {"script", "style", "title"}


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.parts: list[str] = []
        self._unseen = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._unseen += tag in _UNSEEN
        self.parts += ["\n## "] if tag == "h2" else ["\n"] if tag in _LINES else []

    def handle_endtag(self, tag: str) -> None:
        self._unseen -= tag in _UNSEEN
        self.parts += ["\n"] if tag in _LINES else [" | "] if tag in _CELLS else []

    def handle_data(self, data: str) -> None:
        if not self._unseen:
            self.parts.append(data)


def report_text(path: Path) -> str:
    """Return all text of the report, without what its scripts draw."""
    reader = _Reader()
    reader.feed(path.read_text(encoding="utf-8"))
    return "\n".join(line.removesuffix(" | ") for line in "".join(reader.parts).splitlines() if line.strip())
