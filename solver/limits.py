"""How long and how hard a solve may search."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """How long and how hard to search; `workers` 0 means all cores.

    `deterministic` counts CP-SAT's own units of work instead of seconds: with one worker the same problem and seed
    then give the same answer on every run. `target` (ticks) asks only whether a schedule is at or below it: the search
    stops as soon as one is found, or the bound is above it.
    """

    seconds: float = 60.0
    workers: int = 0
    seed: int = 0
    gap: float = 0.0
    deterministic: float | None = None
    target: int | None = None
