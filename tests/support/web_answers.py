"""Answers of the page's server as lists of (kind, content)."""

from __future__ import annotations

import json
from typing import Any

GOOD = "devices: 2\nmicrobatches: 3\ntimes: {forward: 1, backward: 1, weight: 1}\n"


def lines(response: Any) -> list[tuple[str, Any]]:
    """Return the messages (kind, content) of a stream of JSON lines."""
    return [pair for line in response.text.splitlines() for pair in json.loads(line).items()]


def events(response: Any) -> list[tuple[str, Any]]:
    """Return the messages (kind, content) of a stream of server-sent events."""
    found = []
    for block in response.text.split("\n\n"):
        if block.startswith("event: "):
            kind, _, data = block.partition("\n")
            found.append((kind.removeprefix("event: "), json.loads(data.removeprefix("data: "))))
    return found


def compared(client: Any, text: str, *edits: tuple[str, str]) -> list[tuple[str, Any]]:
    """Return all messages (kind, content) that the page gets for a problem's text, after these edits of its form."""
    asked = {"text": text, "edits": [{"path": path, "typed": typed} for path, typed in edits]}
    return lines(client.post("/api/compare", json=asked))


def of_kind(found: list[tuple[str, Any]], kind: str) -> list[Any]:
    """Return the contents of the messages of one kind."""
    return [content for one, content in found if one == kind]
