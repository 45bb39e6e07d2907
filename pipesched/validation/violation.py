"""Violations: a rule that a schedule or a timeline breaks, and the passes concerned."""

from __future__ import annotations

from dataclasses import dataclass

from pipesched.problem.passes import Pass


@dataclass(frozen=True)
class Violation:
    """One broken rule by its name (as `validate` lists them), the passes that break it, and a sentence that describes
    it."""

    rule: str
    passes: tuple[Pass, ...]
    text: str
