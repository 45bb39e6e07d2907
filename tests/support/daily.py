"""The share of drawn cases that the tests of a day look at, so that all of them are looked at within a few days."""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import UTC, date, datetime
from typing import TypeVar

Case = TypeVar("Case")

# PIPESCHED_DAY=2026-11-29 runs the share of that day again, PIPESCHED_DAY=all every case.
_ASKED = os.environ.get("PIPESCHED_DAY") or ""
EVERY = _ASKED == "all"
DAY = (date.fromisoformat(_ASKED) if _ASKED and not EVERY else datetime.now(UTC).date()).toordinal()


def daily(every: Sequence[Case], parts: int) -> Sequence[Case]:
    """Every `parts`-th case, from another one on each day."""
    return every if EVERY else every[DAY % parts :: parts]
