"""A mistake made by hand, and the branches of the attack that must refute it."""

from __future__ import annotations

from typing import NamedTuple

BELOW = "crossings of steps below a value, "
SPLIT, SPAN, V = BELOW + "room after W", BELOW + "span", BELOW + "V"
PAIRS = tuple(
    f"{BELOW}blocks, {name}" for name in ("one backward", "one stage a device", "makespan", "split backwards")
)
WITH_BLOCKS = "crossings with blocks, "
BLOCKS = tuple(WITH_BLOCKS + name for name in ("one backward", "span", "split backwards"))
PLAIN = (SPLIT, SPAN, BELOW + "makespan")


class HandMade(NamedTuple):
    """A text of a file, which is there once, and what it becomes; and the branches of an attack that must refute it."""

    file: str
    mistake: str
    before: str
    after: str
    branches: tuple[str, ...]


def of_file(file: str, *rows: tuple[str, str, str, tuple[str, ...]]) -> tuple[HandMade, ...]:
    """Several of one file: mistake, text before and after, branches."""
    return tuple(HandMade(file, *row) for row in rows)
