"""Results for several micro-batch sizes of one file, and how much longer each is than the best."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

from pipesched.results.solution import Status

_OPEN = "of the others none is known better"


class SizeResult(NamedTuple):
    """The result for one micro-batch size: value and lower bound of a whole batch, in the file's unit.

    `sequences` are those of a micro-batch, None where the file does not say; `reason` says why there is no value.
    """

    microbatches: int
    sequences: int | None
    status: Status
    value: Fraction | None
    lower_bound: Fraction
    reason: str = ""

    @property
    def name(self) -> str:
        """The micro-batch size as text."""
        of = "" if self.sequences is None else f" of {self.sequences} sequence{'s' * (self.sequences > 1)}"
        return f"{self.microbatches} micro-batch{'es' * (self.microbatches > 1)}{of}"


@dataclass(frozen=True)
class BatchSizes:
    """The results for all micro-batch sizes of a file, in its order."""

    results: tuple[SizeResult, ...] = ()

    @property
    def best(self) -> SizeResult | None:
        """The first result with the least value; None if none has a schedule."""
        return min((one for one in self.results if one.value is not None), key=_value, default=None)

    def above(self, result: SizeResult) -> Fraction | None:
        """Return the share by which a result's value is above the best one; None if either has no value."""
        return None if result.value is None else self._share(result.value)

    def at_least_above(self, result: SizeResult) -> Fraction | None:
        """Return the share by which a result's lower bound is above the best value, at least 0.

        None without a value.
        """
        share = None if result.status is Status.INFEASIBLE else self._share(result.lower_bound)
        return None if share is None else max(share, Fraction(0))

    def _share(self, value: Fraction) -> Fraction | None:
        best = self.best
        return value / best.value - 1 if best is not None and best.value else None

    def document(self) -> list[dict[str, Any]]:
        """Return an entry for each size, under the key `sizes` in `--json`: proof status, value, bound, and excess over
        the least."""
        return [
            {
                "microbatches": one.microbatches,
                "microbatch_size": one.sequences,
                "status": one.status.value,
                "value": _number(one.value),
                "lower_bound": float(one.lower_bound),
                "above_least": _number(self.above(one)),
                "at_least_above": _number(self.at_least_above(one)),
                "reason": one.reason,
            }
            for one in self.results
        ]

    def sentences(self) -> Iterator[str]:
        """Yield sentences on the best size, and how much longer each other one is, as far as proved."""
        best = self.best
        if best is None:
            return
        others = [one for one in self.results if one is not best]
        longer = [one.status is Status.INFEASIBLE or one.lower_bound > _value(best) for one in others]
        no_less = [one.status is Status.INFEASIBLE or one.lower_bound >= _value(best) for one in others]
        verdict = "every other is worse" if all(longer) else "no other is better" if all(no_less) else _OPEN
        yield f"best size: {best.name}; {verdict}"
        yield from (f"  {one.name}: {self._apart(one)}" for one in others)

    def _apart(self, one: SizeResult) -> str:
        above, least = self.above(one), self.at_least_above(one)
        if above is None:
            return one.reason or ("infeasible" if one.status is Status.INFEASIBLE else "no schedule found")
        if one.status is Status.OPTIMAL:
            return f"{_percent(above)} longer" if above else "as good"
        return f"{_percent(above)} longer, at least {_percent(least or Fraction(0))}"


def _value(one: SizeResult) -> Fraction:
    assert one.value is not None
    return one.value


def _percent(share: Fraction) -> str:
    return f"{float(100 * share):.2f} %"


def _number(value: Fraction | None) -> float | None:
    return None if value is None else float(value)
