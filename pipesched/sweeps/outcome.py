"""The outcome of a cell: value, bound, certificate, schedule and published schedules, all numbers exact."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from typing import Any

from pipesched.results.free_memory import MostFree, free_from
from pipesched.results.gap import gap
from pipesched.results.solution import Status


@dataclass(frozen=True)
class PublishedResult:
    """A published schedule in a cell; value, makespan and span, and memory of the fullest device, in the file's units.

    `value` is None if it does not apply, and `reason` says why; `fits` is False if it exceeds the memory, or does not
    apply.
    """

    name: str
    fits: bool
    value: Fraction | None = None
    makespan: Fraction | None = None
    span: Fraction | None = None
    memory: Fraction | None = None
    reason: str = ""


@dataclass(frozen=True)
class Effort:
    """The limits of a cell's search: its time limit in seconds, workers, seed, and the gap at which it stops.

    The gap is a share of the value, from 0 to 1.
    """

    seconds: float
    workers: int
    seed: int
    gap: float


@dataclass(frozen=True)
class Outcome:
    """The outcome of a cell's search, in the file's units.

    No schedule has a value less than `lower_bound` (None: no bound). `claim` is the bound's argument as text, `kind`
    the kind of argument, and `evidence` the data for its check as in a schedule file, None if there is none. Makespan,
    span, period and memory are figures of the best schedule, None or empty without one; `peak_memory` is by device.
    `work` is the busiest device's work, and its remaining time is the bubble; `bubble` has the bubble rate, a share of
    1, by name of the objective, `idle_ratio` is the mean idle share of the makespan. `published` are in no order of
    value. `schedule` is the packed schedule file. `choice` is the choice of a plan, None for a problem. `reason` says
    why there is no schedule, empty if there is one. `finished` is False if every search was interrupted. `effort` has
    the limits of one search, the finished one with the highest time limit, and `wall_seconds` is its duration. `free`
    is the free memory, if it is maximised first; value and bound are then of the schedules that leave as much.
    """

    status: Status
    effort: Effort
    value: Fraction | None = None
    lower_bound: Fraction | None = None
    kind: str = ""
    claim: str = ""
    evidence: Mapping[str, Any] | None = None
    makespan: Fraction | None = None
    span: Fraction | None = None
    period: Fraction | None = None
    work: Fraction | None = None
    peak_memory: tuple[Fraction, ...] = ()
    bubble: Mapping[str, float] | None = None
    idle_ratio: float | None = None
    published: tuple[PublishedResult, ...] = ()
    choice: Mapping[str, Any] | None = None
    reason: str = ""
    notes: tuple[str, ...] = ()
    wall_seconds: float = 0.0
    finished: bool = True
    schedule: bytes | None = None
    free: MostFree | None = None

    @property
    def gap(self) -> float | None:
        """The optimality gap, (value - lower bound) / value; None without a schedule or without a bound."""
        if self.value is None or self.lower_bound is None:
            return None
        return gap(self.value, self.lower_bound)

    def idle(self, objective: str) -> float | None:
        """Return the idle time, mean over the devices, as a share of this objective's value.

        None without a schedule, and for a period that its timeline does not have.
        """
        if self.idle_ratio is None or self.bubble is None or objective not in self.bubble:
            return None
        busiest = 1 - self.bubble["makespan"]
        return 1 - (1 - self.idle_ratio) * ((1 - self.bubble[objective]) / busiest if busiest else 1)

    @property
    def best_published(self) -> PublishedResult | None:
        """The published schedule of least value that fits; None if there is none."""
        fitting = [one for one in self.published if one.fits and one.value is not None]
        return min(fitting, key=lambda one: one.value or Fraction(0), default=None)

    def solved_within(self, allowed: float) -> bool:
        """Return True if further search would add nothing: the answer is final, or its gap is at most `allowed`.

        Final are OPTIMAL and INFEASIBLE; `allowed` is a share of the value, from 0 to 1.
        """
        closed = self.gap is not None and self.gap <= allowed
        return self.status in (Status.OPTIMAL, Status.INFEASIBLE) or closed

    def merged(self, other: Outcome) -> Outcome:
        """Return an outcome of the same cell with the better schedule and the stronger bound of the two.

        Where both are equal, those of this one; limits, duration and `finished` are those of the finished one with the
        higher time limit. If neither has a schedule and one proves that there is none, that one is returned as it is.
        If the two leave different amounts of free memory, it is the one that leaves more.
        """
        if self.free != other.free:
            # Value and bound are those of one amount: none of them says anything of another.
            return max(self, other, key=lambda one: (one.free is not None, (one.free and one.free.value) or 0))
        if self.value is None and other.value is None:
            for one in (self, other):
                if one.status is Status.INFEASIBLE:
                    return one
        best = other if other.value is not None and (self.value is None or other.value < self.value) else self
        firm = other if other.lower_bound is not None and other.lower_bound > (self.lower_bound or 0) else self
        more = other if (other.finished, other.effort.seconds) > (self.finished, self.effort.seconds) else self
        return replace(
            best,
            lower_bound=firm.lower_bound,
            kind=firm.kind,
            claim=firm.claim,
            evidence=firm.evidence,
            effort=more.effort,
            wall_seconds=more.wall_seconds,
            finished=more.finished,
            published=max(self.published, other.published, key=len),
        ).settled()

    def with_bound(self, bound: Fraction, kind: str, claim: str, evidence: Mapping[str, Any] | None = None) -> Outcome:
        """Return the outcome with another lower bound, in the file's unit of time, if it is stronger; else itself.

        `kind`, `claim` and `evidence` are the bound's argument, and replace the fields of these names; the status
        becomes that of value and bound (`settled`).
        """
        if self.lower_bound is not None and bound <= self.lower_bound:
            return self
        return replace(self, lower_bound=bound, kind=kind, claim=claim, evidence=evidence).settled()

    def settled(self) -> Outcome:
        """Return the outcome with the status OPTIMAL if value and bound are equal, else FEASIBLE.

        It is unchanged if it lacks value or bound. Where free memory is maximised first, the proof that no more can be
        left must be there too.
        """
        if self.value is None or self.lower_bound is None:
            return self
        reached = self.value == self.lower_bound and (self.free is None or self.free.proved)
        return replace(self, status=Status.OPTIMAL if reached else Status.FEASIBLE)

    def document(self) -> dict[str, Any]:
        """Return the outcome as a document for the store: all fields but `schedule`, by name, fractions as exact text.

        Of `effort` and `published` these are fields by name, too; `free` is that of `MostFree.stated`, or None.
        """
        fields = asdict(self) | {"status": self.status.value}
        fields["free"] = None if self.free is None else self.free.stated()
        del fields["schedule"]
        return {name: _as_text(value) for name, value in fields.items()}


def outcome_from(document: Mapping[str, Any], schedule: bytes | None) -> Outcome:
    """Return the outcome of a cell from its stored document, with the compressed schedule stored next to it.

    KeyError, TypeError or ValueError for a document of another form than `Outcome.document`.
    """
    fields = dict(document)
    for name in ("value", "lower_bound", "makespan", "span", "period", "work"):
        fields[name] = _fraction(fields[name])
    published = tuple(
        PublishedResult(**(one | {key: _fraction(one[key]) for key in ("value", "makespan", "span", "memory")}))
        for one in fields["published"]
    )
    free = fields.get("free")
    return Outcome(
        **(
            fields
            | {
                "free": None if free is None else free_from(free),
                "status": Status(fields["status"]),
                "effort": Effort(**fields["effort"]),
                "peak_memory": tuple(map(Fraction, fields["peak_memory"])),
                "published": published,
                "notes": tuple(fields["notes"]),
            }
        ),
        schedule=schedule,
    )


def _fraction(text: str | None) -> Fraction | None:
    return None if text is None else Fraction(text)


def _as_text(value: Any) -> Any:
    if isinstance(value, Fraction):
        return str(value)
    if isinstance(value, tuple | list):
        return [_as_text(one) for one in value]
    return {key: _as_text(one) for key, one in value.items()} if isinstance(value, Mapping) else value
