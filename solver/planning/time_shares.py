"""One time limit shared by several plan searches that run one after another, and their joint progress reports."""

from __future__ import annotations

from dataclasses import dataclass, replace
from time import monotonic

from solver.limits import Limits
from solver.parameters import tunable, tuned
from solver.planning.progress import Report


@dataclass(frozen=True)
@tunable
class TimeSharesParams:
    """Least time of one of several searches that share a time limit."""

    least_seconds: float = tuned(0.2, "s for one search, even where the time is over", 0, 10)


_PARAMS = TimeSharesParams()


class TimeShares:
    """One limit, of seconds from its creation or of work units, divided among searches that run one after another.

    A `share` is a mark on the whole limit: `part(0.5, n)` is an n-th of what is left until half of the limit is spent;
    in seconds it is at least a fixed minimum. Work units count as spent when they are given out.
    """

    def __init__(self, limits: Limits) -> None:
        self._limits, self._begin, self._units = limits, monotonic(), 0.0

    @property
    def seconds(self) -> float:
        """Seconds since this object was created, which is when the first search may begin."""
        return monotonic() - self._begin

    @property
    def whole(self) -> float:
        """The whole limit in seconds, or in work units where work is counted."""
        return self._limits.seconds if self._limits.deterministic is None else self._limits.deterministic

    def spent(self, share: float = 1) -> bool:
        """True if at least `share` of the whole limit is spent."""
        limits = self._limits
        if limits.deterministic is not None:
            return self._units >= share * limits.deterministic
        return self.seconds >= share * limits.seconds

    def none(self) -> Limits:
        """Return limits of zero, for searches that only make their first plan."""
        return replace(self._limits, seconds=0, deterministic=None if self._limits.deterministic is None else 0)

    def part(self, share: float, among: int) -> Limits:
        """Return limits for the next of `among` searches that together end when `share` of the whole limit is spent."""
        limits = self._limits
        seconds = max(_PARAMS.least_seconds, (share * limits.seconds - self.seconds) / among)
        if limits.deterministic is None:
            return replace(limits, seconds=seconds)
        units = max(0.0, (share * limits.deterministic - self._units) / among)
        self._units += units
        return replace(limits, deterministic=units)


def named(report: Report, name: str, before: float) -> Report:
    """Return a report function for one of several searches, which adds its name and the seconds `before` it began."""
    return lambda moment: report(replace(moment, seconds=moment.seconds + before, phase=f"{name}: {moment.phase}"))
