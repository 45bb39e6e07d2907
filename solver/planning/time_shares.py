"""One time limit for several searches of plans, one after another, and their progress as that of one."""

from __future__ import annotations

from dataclasses import dataclass, replace
from time import monotonic

from solver.limits import Limits
from solver.parameters import tunable, tuned
from solver.planning.progress import Report


@dataclass(frozen=True)
@tunable
class TimeSharesParams:
    """One time limit for several searches."""

    least_seconds: float = tuned(0.2, "s for one search, even where the time is over", 0, 10)


_PARAMS = TimeSharesParams()


class TimeShares:
    """Parts of the time limit, or of the units of work where these are counted."""

    def __init__(self, limits: Limits) -> None:
        self._limits, self._begin, self._units = limits, monotonic(), 0.0

    @property
    def seconds(self) -> float:
        """Since the first began."""
        return monotonic() - self._begin

    @property
    def whole(self) -> float:
        """Seconds in all, or units of work."""
        return self._limits.seconds if self._limits.deterministic is None else self._limits.deterministic

    def spent(self, share: float = 1) -> bool:
        """True if this share of all is spent."""
        limits = self._limits
        if limits.deterministic is not None:
            return self._units >= share * limits.deterministic
        return self.seconds >= share * limits.seconds

    def none(self) -> Limits:
        """For what is found at once."""
        return replace(self._limits, seconds=0, deterministic=None if self._limits.deterministic is None else 0)

    def part(self, share: float, among: int) -> Limits:
        """For the next of so many searches, which together end when this share of all is spent."""
        limits = self._limits
        seconds = max(_PARAMS.least_seconds, (share * limits.seconds - self.seconds) / among)
        if limits.deterministic is None:
            return replace(limits, seconds=seconds)
        units = max(0.0, (share * limits.deterministic - self._units) / among)
        self._units += units
        return replace(limits, deterministic=units)


def named(report: Report, name: str, before: float) -> Report:
    """A report of one search among others, which began so many seconds ago."""
    return lambda moment: report(replace(moment, seconds=moment.seconds + before, phase=f"{name}: {moment.phase}"))
