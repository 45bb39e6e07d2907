"""A broken rule: what the judge says of a schedule or a timeline that is not right."""

from __future__ import annotations

from dataclasses import dataclass

from pipesched.passes import Pass


@dataclass(frozen=True)
class Violation:
    """One broken rule, the passes that break it, and the sentence that says how."""

    rule: str
    passes: tuple[Pass, ...]
    text: str
