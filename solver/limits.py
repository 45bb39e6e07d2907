"""Limits of a solve: time, work and processors."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from numbers import Integral, Rational, Real

from pipesched.arguments import refuse_other
from pipesched.errors import BadInput
from pipesched.files.schema_errors import shown
from pipesched.problem.attainable_spans import Value

_MOST_WORKERS = 1024


@dataclass(frozen=True)
class Limits:
    """Limits of a search; `workers` 0 means all cores.

    `deterministic` counts CP-SAT's own units of work instead of seconds (None: seconds count): with one worker the same
    problem and seed then give the same answer on every run. `seed` is that of CP-SAT and of every random search. `gap`,
    a share from 0 to 1, is that of (value - bound) / value at which the search may stop. With a `target`, in ticks of
    the problem that is solved (None: the least value is sought), the search only decides if a schedule at or below it
    exists: it stops as soon as one is found, or the bound exceeds it. `BadInput` has a line for each wrong field.
    """

    seconds: float = 60.0
    workers: int = 0
    seed: int = 0
    gap: float = 0.0
    deterministic: float | None = None
    target: Value | None = None

    def __post_init__(self) -> None:
        found = list(self._mistakes())
        if found:
            raise BadInput(*found)

    def _mistakes(self) -> Iterator[str]:
        if not _is_number(self.seconds) or not self.seconds >= 0:
            yield f"seconds: found {shown(self.seconds)}; allowed: a number of at least 0"
        if not _is_whole(self.workers) or not 0 <= self.workers <= _MOST_WORKERS:
            yield f"workers: found {shown(self.workers)}; allowed: a whole number up to {_MOST_WORKERS} (0: all cores)"
        if not _is_whole(self.seed) or not 0 <= self.seed < 2**31:
            yield f"seed: found {shown(self.seed)}; allowed: a whole number from 0 to {2**31 - 1}"
        if not _is_number(self.gap) or not 0 <= self.gap <= 1:
            yield f"gap: found {shown(self.gap)}; allowed: a share from 0 to 1, such as 0.05"
        if self.deterministic is not None and (not _is_number(self.deterministic) or not self.deterministic >= 0):
            yield f"deterministic: found {shown(self.deterministic)}; allowed: a number of at least 0, or None"
        if self.target is not None and not isinstance(self.target, Rational):
            yield f"target: found {shown(self.target)}; allowed: a whole number or a fraction of ticks, or None"


def limits_from(name: str, limits: Limits | None, seconds: float | None) -> Limits:
    """Return the limits for a call of the function `name`, with `seconds` as the time limit if given.

    With `limits` None they are the defaults. `BadInput` if `limits` is of another type or `seconds` is no number of at
    least 0; `name` is for its text.
    """
    refuse_other("limits", limits, (Limits, type(None)), f"Limits(seconds=30), or {name}(…, seconds=30)")
    found = limits or Limits()
    return found if seconds is None else replace(found, seconds=seconds)


def _is_number(value: object) -> bool:
    """True for a real number that is not a bool."""
    return isinstance(value, Real) and not isinstance(value, bool)


def _is_whole(value: object) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool)
