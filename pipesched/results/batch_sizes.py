"""Results for several micro-batch sizes of one file, and how much worse each is than the best."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from math import inf
from typing import Any, NamedTuple

from pipesched.problem.formatting import plain
from pipesched.results.free_memory import MostFree
from pipesched.results.solution import Status

_OPEN = "of the others none is known better"


class SizeResult(NamedTuple):
    """The result for one micro-batch size: value and lower bound of a whole batch, in the file's unit.

    `microbatches` is their number; `sequences` are those of a micro-batch, None where the file does not say; `reason`
    says why there is no value, which is then None; `free` is the free memory if it is maximised first, else None: value
    and lower bound are of what leaves as much.
    """

    microbatches: int
    sequences: int | None
    status: Status
    value: Fraction | None
    lower_bound: Fraction
    reason: str = ""
    free: MostFree | None = None

    @property
    def name(self) -> str:
        """The number and size of the micro-batches as text: `8 micro-batches of 2 sequences`."""
        of = "" if self.sequences is None else f" of {self.sequences} sequence{'s' * (self.sequences > 1)}"
        return f"{self.microbatches} micro-batch{'es' * (self.microbatches > 1)}{of}"


@dataclass(frozen=True)
class BatchSizes:
    """The results for all micro-batch sizes of a file, in its order, and how much worse each is than the best.

    Excess is a share of the best value. If free memory is maximised first, the best size is the one that leaves the
    most, and `less_free` the amount, in the file's unit, by which another leaves less.
    """

    results: tuple[SizeResult, ...] = ()

    @property
    def best(self) -> SizeResult | None:
        """The result with the most free memory, if that is maximised, and then the least value.

        The first of equal ones; None if no result has a schedule.
        """
        return min((one for one in self.results if one.value is not None), key=_achieved, default=None)

    def above(self, result: SizeResult) -> Fraction | None:
        """Return the share by which a result's value is above the best one.

        None if either has no value, the best one is 0, or their free memory differs.
        """
        return None if result.value is None or self.less_free(result) else self._share(result.value)

    def at_least_above(self, result: SizeResult) -> Fraction | None:
        """Return the share by which a result's lower bound is above the best value; at least 0.

        None for a size that is infeasible, and without a best value, or one of 0. Where free memory is maximised first,
        also None if the two leave different amounts, or this size may leave more than was found.
        """
        if result.status is Status.INFEASIBLE or self.less_free(result):
            return None
        best = self.best
        if best is not None and best.free is not None and (result.free is None or not result.free.proved):
            return None
        share = self._share(result.lower_bound)
        return None if share is None else max(share, Fraction(0))

    def less_free(self, result: SizeResult) -> Fraction | None:
        """Return by how much less memory a result leaves than the best one, in the file's unit.

        None if free memory is not maximised, or one of the two has no schedule.
        """
        best = self.best
        return None if best is None or best.free is None or result.free is None else best.free.value - result.free.value

    def _share(self, value: Fraction) -> Fraction | None:
        best = self.best
        return value / best.value - 1 if best is not None and best.value else None

    def document(self) -> list[dict[str, Any]]:
        """Return an entry for each size, in their order, for the key `sizes` of `--json`.

        The keys are `microbatches`, `microbatch_size` (sequences), `status`, `value`, `lower_bound`, `above_least` and
        `at_least_above`, shares by which value and bound exceed the best value, and `reason`. Numbers are floats in the
        file's units, None where unknown. If free memory is maximised first there are `free_memory` and `less_free`, the
        amount by which the size leaves less than the best.
        """
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
            | (
                {}
                if one.free is None
                else {"free_memory": one.free.document(), "less_free": _number(self.less_free(one))}
            )
            for one in self.results
        ]

    def sentences(self) -> Iterator[str]:
        """Yield sentences on the best size, and how much worse each other one is, as far as proved."""
        best = self.best
        if best is None:
            return
        others, least = [one for one in self.results if one is not best], _achieved(best)
        leaves = best.free is not None
        worse = [one.status is Status.INFEASIBLE or _possible(one, leaves) > least for one in others]
        no_better = [one.status is Status.INFEASIBLE or _possible(one, leaves) >= least for one in others]
        verdict = "every other is worse" if all(worse) else "no other is better" if all(no_better) else _OPEN
        yield f"best size: {best.name}; {verdict}"
        yield from (f"  {one.name}: {self._apart(one)}" for one in others)

    def _apart(self, one: SizeResult) -> str:
        if less := self.less_free(one):
            assert one.free is not None
            least = max(less - (one.free.bound - one.free.value), Fraction(0))
            known = "" if one.free.proved else f", at least {plain(float(least))} less"
            return f"leaves {plain(float(less))} less{known}"
        above, least_above = self.above(one), self.at_least_above(one)
        if above is None:
            return one.reason or ("infeasible" if one.status is Status.INFEASIBLE else "no schedule found")
        if one.status is Status.OPTIMAL:
            return f"{_percent(above)} longer" if above else "as good"
        if least_above is None:
            return f"{_percent(above)} longer; it may leave more"
        return f"{_percent(above)} longer, at least {_percent(least_above)}"


def _achieved(one: SizeResult) -> tuple[Fraction, Fraction]:
    """Return the key that is least for the best size: free memory, negated, and value.

    In the file's units of memory and time; free memory is 0 where it does not count.
    """
    assert one.value is not None
    return (Fraction(0) if one.free is None else -one.free.value), one.value


def _possible(one: SizeResult, leaves: bool) -> tuple[Fraction | float, Fraction]:
    """Return a lower bound on the key `_achieved` of every schedule of this size.

    `leaves` says that free memory counts. While more free memory may be possible, nothing is known of the time of what
    leaves it; nor of the memory that a size without a schedule may leave.
    """
    if one.free is None:
        return (-inf, Fraction(0)) if leaves else (Fraction(0), one.lower_bound)
    return -one.free.bound, (one.lower_bound if one.free.proved else Fraction(0))


def _percent(share: Fraction) -> str:
    return f"{float(100 * share):.2f} %"


def _number(value: Fraction | None) -> float | None:
    return None if value is None else float(value)
