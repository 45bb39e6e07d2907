"""Violations: a rule that a schedule or a timeline breaks, and the passes concerned."""

from __future__ import annotations

from dataclasses import dataclass

from pipesched.problem.passes import Pass


@dataclass(frozen=True)
class Violation:
    """A broken rule by its name, the passes that break it, and a sentence that describes it.

    Names are those that `validate` lists, and `state` for a task of a replanned iteration that had begun and was moved,
    or starts before its time.
    """

    rule: str
    passes: tuple[Pass, ...]
    text: str
