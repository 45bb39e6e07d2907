"""The state of an instance: its best schedule, its best bound, published figures, and who is ahead."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from benchmarks.library.entry import Entry, entry
from benchmarks.library.figures import COMPARABLE, Figure, figures
from benchmarks.library.instance import Instance
from pipesched.errors import BadInput


@dataclass(frozen=True)
class Standing:
    """An instance with the files that count; `mistakes` are what does not hold, one line each."""

    instance: Instance
    entries: tuple[Entry, ...]
    published: tuple[Figure, ...]
    mistakes: tuple[str, ...]

    @property
    def best(self) -> Entry | None:
        """The file with the best schedule; None where there is none."""
        valued = [one for one in self.entries if not one.refused and one.value is not None]
        return min(valued, key=lambda one: one.value or 0, default=None)

    @property
    def bound(self) -> Entry | None:
        """The file with the best bound that is verified or rests on a search; of two equal ones the verified."""
        bounded = [one for one in self.entries if not one.refused and one.bound is not None]
        return max(bounded, key=lambda one: (one.bound or 0, not one.trusted), default=None)

    @property
    def gap(self) -> Fraction | None:
        """The distance of the best schedule from the bound, as a share of its value."""
        if self.best is None or self.bound is None:
            return None
        value, bound = self.best.value or Fraction(0), self.bound.bound or Fraction(0)
        return (value - bound) / value

    @property
    def compared(self) -> Figure | None:
        """The best published figure of a schedule of this very problem."""
        able = [one for one in self.published if one.published.kind in COMPARABLE]
        return min(able, key=lambda one: one.low, default=None)

    @property
    def ahead(self) -> Fraction | None:
        """The share by which the best published schedule takes longer than ours; negative where it is ahead."""
        if self.compared is None or self.best is None or not self.best.value:
            return None
        low, high, ours = self.compared.low, self.compared.high, self.best.value
        nearest = min(max(ours, low), high)
        return nearest / ours - 1


def standing(instance: Instance) -> Standing:
    """Read and check all files of an instance."""
    entries = tuple(entry(instance, path) for path in instance.files)
    mistakes = [one.refused for one in entries if one.refused]
    try:
        published = tuple(figures(instance))
    except BadInput as error:
        published = ()
        mistakes += error.mistakes
    found = Standing(instance, entries, published, ())
    mistakes += [*_superfluous(found), *_contradictions(found)]
    return Standing(instance, entries, published, tuple(mistakes))


def _superfluous(found: Standing) -> Iterator[str]:
    """Files that bring neither the best value nor the best bound: of two equal ones the first counts."""
    needed = {id(one) for one in (found.best, found.bound)}
    for one in found.entries:
        if not one.refused and id(one) not in needed:
            best = found.best
            assert best is not None
            yield f"{one.path}: neither a better schedule nor a better bound than {best.path.name} has"


def _contradictions(found: Standing) -> Iterator[str]:
    """A bound above a schedule, ours or a published one: one of the two is wrong."""
    name, best, bound = found.instance.name, found.best, found.bound
    if best is not None and bound is not None and (bound.bound or 0) > (best.value or 0):
        yield f"{name}: the bound of {bound.path.name} is above the schedule of {best.path.name}"
    for one in found.published:
        if one.published.kind == "bound" and best is not None and one.low > (best.value or 0):
            yield f"{name}: the published {one} is above the schedule of {best.path.name}"
        if one.published.kind in COMPARABLE and bound is not None and one.high < (bound.bound or 0):
            yield f"{name}: the published {one} is below the bound of {bound.path.name}"
