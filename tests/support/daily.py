"""The share of drawn cases that the tests of a day look at, so that all of them are looked at within a few days."""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import UTC, date, datetime
from typing import TypeVar

Case = TypeVar("Case")

# PIPESCHED_DAY=2026-11-29 runs the share of that day again.
DAY = date.fromisoformat(os.environ.get("PIPESCHED_DAY") or datetime.now(UTC).date().isoformat()).toordinal()


def daily(every: Sequence[Case], parts: int) -> Sequence[Case]:
    """Return every `parts`-th case, beginning with another one on each day, so that `parts` days cover all."""
    return every[DAY % parts :: parts]
