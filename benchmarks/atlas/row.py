"""Rows of the atlas: a point with the value, bound and published schedules of each placement, and their file."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.atlas.grid import Family, Point
from pipesched.checking.finding import Verdict
from pipesched.errors import BadInput
from pipesched.files.atomic_write import write_whole

# Schedules of the catalogue that are our improvements of published ones; rows have their values all the same.
IMPROVED = ("v-half-cost-aware", "v-min-cost-aware", "zbv-cost-aware")


class PublishedValue(NamedTuple):
    """A published schedule that applies: its value in ticks, and the memory of the fullest device in half activations.

    An activation is that of all layers of a device for one micro-batch.
    """

    value: int
    memory: int
    fits: bool


class Fitting(NamedTuple):
    """A published schedule that fits the memory of a point, on a placement."""

    value: int
    memory: int
    schedule: str
    placement: str


@dataclass(frozen=True)
class Placed:
    """A point on one placement; value and bound in ticks, None where no schedule or no bound is known.

    `verdict` is that of `check` on the bound, empty where there is none.
    """

    value: int | None
    lower_bound: int | None
    proved_by: str
    verdict: str
    published: Mapping[str, PublishedValue]

    def with_known(self, other: Placed) -> Placed:
        """Return this with the value and the bound of another run where they are better: each was checked by itself.

        Its published schedules are those of the other run where it compared none.
        """
        known = [value for value in (self.value, other.value) if value is not None]
        found = replace(self, value=min(known, default=None), published=self.published or other.published)
        if (other.lower_bound or 0) <= (self.lower_bound or 0):
            return found
        return replace(found, lower_bound=other.lower_bound, proved_by=other.proved_by, verdict=other.verdict)


@dataclass(frozen=True)
class Row:
    """A point with its placements by name; `units` of CP-SAT's work were each search's limit."""

    point: Point
    placed: Mapping[str, Placed]
    units: float
    seconds: float
    made_by: str

    @property
    def value(self) -> int | None:
        """The best value found on any placement."""
        return min((one.value for one in self.placed.values() if one.value is not None), default=None)

    @property
    def lower_bound(self) -> int:
        """No schedule on any of the placements is below it."""
        return min(one.lower_bound or 0 for one in self.placed.values())

    @property
    def proved(self) -> bool:
        """True if the best value is the optimum over the placements, by bounds that hold."""
        return self.value == self.lower_bound

    @property
    def trusted(self) -> bool:
        """True if a bound that this rests on is an exhaustive search, which the check does not repeat."""
        return any(one.verdict == Verdict.TRUSTED.value for one in self.placed.values())

    @property
    def placements(self) -> list[str]:
        """The placements on which the best value was found."""
        return [name for name, one in self.placed.items() if one.value == self.value is not None]

    @property
    def fitting(self) -> list[Fitting]:
        """The published schedules that fit, best first, of equal ones that with the least memory first."""
        return sorted(
            Fitting(own.value, own.memory, name, placement)
            for placement, one in self.placed.items()
            for name, own in one.published.items()
            if own.fits and name not in IMPROVED
        )

    @property
    def excess(self) -> float | None:
        """The share by which the best published schedule takes longer than the best order; None if none fits.

        At least that where the best order is not proved optimal.
        """
        return self.fitting[0].value / self.value - 1 if self.fitting and self.value else None

    def document(self) -> dict[str, Any]:
        """The row as it is stored."""
        family = self.point.family
        return {
            "p": family.devices,
            "m/p": family.length,
            "memory": str(self.point.memory),
            "times": family.ratio,
            "transfer": str(family.transfer),
            "placements": {
                name: {
                    "value": one.value,
                    "lower_bound": one.lower_bound,
                    "proved_by": one.proved_by,
                    "bound": one.verdict,
                    "published": {schedule: [*own] for schedule, own in one.published.items()},
                }
                for name, one in self.placed.items()
            },
            "units": self.units,
            "seconds": round(self.seconds, 1),
            "made_by": self.made_by,
        }


def row_from(entry: Mapping[str, Any]) -> Row:
    """The row whose document this is."""
    family = Family(entry["p"], entry["m/p"], entry["times"], Fraction(entry["transfer"]))
    placed = {
        name: Placed(
            one["value"],
            one["lower_bound"],
            one["proved_by"],
            one["bound"],
            {schedule: PublishedValue(*own) for schedule, own in one["published"].items()},
        )
        for name, one in entry["placements"].items()
    }
    point = Point(family, Fraction(entry["memory"]))
    return Row(point, placed, entry["units"], entry["seconds"], entry["made_by"])


def read_rows(path: Path) -> dict[Point, Row]:
    """The rows of a file by point, none where there is no file; `BadInput` for a file of something else."""
    if not path.exists():
        return {}
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
        rows = [row_from(json.loads(line)) for line in lines]
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        raise BadInput(f"{path}: found something else than rows of the atlas ({error})") from None
    return {row.point: row for row in rows}


def write_rows(path: Path, rows: Iterable[Row]) -> None:
    """All rows in the order of their points, whole or not at all."""
    ordered = sorted(rows, key=lambda row: row.point)
    write_whole(path, "".join(json.dumps(row.document()) + "\n" for row in ordered))
