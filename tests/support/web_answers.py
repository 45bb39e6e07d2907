"""Answers of the page's server as lists of what they say."""

from __future__ import annotations

import json
from typing import Any

GOOD = "devices: 2\nmicrobatches: 3\ntimes: {forward: 1, backward: 1, weight: 1}\n"


def lines(response: Any) -> list[tuple[str, Any]]:
    """What a stream of JSON lines said."""
    return [pair for line in response.text.splitlines() for pair in json.loads(line).items()]


def events(response: Any) -> list[tuple[str, Any]]:
    """What a stream of server-sent events said."""
    found = []
    for block in response.text.split("\n\n"):
        if block.startswith("event: "):
            kind, _, data = block.partition("\n")
            found.append((kind.removeprefix("event: "), json.loads(data.removeprefix("data: "))))
    return found


def compared(client: Any, text: str, *edits: tuple[str, str]) -> list[tuple[str, Any]]:
    """All that the page is told of a problem."""
    asked = {"text": text, "edits": [{"path": path, "typed": typed} for path, typed in edits]}
    return lines(client.post("/api/compare", json=asked))


def of_kind(found: list[tuple[str, Any]], kind: str) -> list[Any]:
    """What was said of one kind."""
    return [content for one, content in found if one == kind]
