"""Limits of a search by counted work alone, so that a busy machine changes no answer."""

from __future__ import annotations

from typing import Any

from solver.limits import Limits

# Far more than any test takes, and finite, since shares of it are formed.
_A_DAY = 86_400.0


def counted(work: float, **more: Any) -> Limits:
    """Return limits of `work` units of CP-SAT's deterministic time in one worker; `more` are other limits."""
    return Limits(**{"seconds": _A_DAY, "workers": 1, "deterministic": work} | more)
