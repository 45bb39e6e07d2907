"""The files that an HTML page would load, and the documents packed in it."""

from __future__ import annotations

import base64
import gzip
import json
import re
from html.parser import HTMLParser
from typing import Any

_LOADS = {"src", "srcset", "data", "action", "href", "poster", "background", "formaction", "ping"}


class _Tags(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.loaded: list[str] = []
        self.scripts = 0
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.scripts += tag == "script"
        if tag in ("link", "iframe", "object", "embed", "base", "form"):
            self.loaded.append(tag)
        for name, value in attrs:
            here = (value or "").startswith(("data:image/", "#"))
            if (name in _LOADS and not here) or name.startswith("on") or "url(" in (value or ""):
                self.loaded.append(f"{name}={value}")


def loaded_by(text: str) -> list[str]:
    """Return everything in a page that would load something from elsewhere, or run as an attribute; none is wanted."""
    asks = re.findall(r"@import|url\(|\bfetch\(|XMLHttpRequest|WebSocket|EventSource|\bimport\(|sendBeacon", text)
    return [*_Tags(text).loaded, *asks]


def scripts_of(text: str) -> int:
    """The number of script elements of a page."""
    return _Tags(text).scripts


def packed_in(text: str, name: str) -> Any:
    """Return the document of this name that is packed in a page."""
    found = re.search(rf'id="data-{name}">([^<]*)</script>', text)
    assert found
    return json.loads(gzip.decompress(base64.b64decode(found[1])))
