"""Where a search stands: the best schedule so far, what is proved, and how it came about."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from threading import Event

from pipesched.amounts import amount
from pipesched.certificate import Certificate
from pipesched.errors import Disagreement
from pipesched.metrics import measure
from pipesched.problem import Problem
from pipesched.schedule import Schedule
from pipesched.solution import Candidate, Progress, Solution, Status, gap
from pipesched.timeline import Timeline
from pipesched.validator import validate
from solver.best_times import best_times
from solver.limits import Limits

Report = Callable[[Progress], None]


class Standing:
    """Keeps what is better and refuses what cannot be: whatever is offered is measured and judged here.

    `bounds` are those known at the start, strongest first, and `started` is the monotonic clock's reading when work on
    them began; `doing` names the step that is under way.
    """

    def __init__(
        self, problem: Problem, limits: Limits, report: Report, stop: Event, bounds: list[Certificate], started: float
    ) -> None:
        self.problem, self.limits, self.report, self.stop = problem, limits, report, stop
        self.started = started
        self.certificates = bounds
        self.certificate: Certificate = bounds[0]
        self.lower_bound = self.certificate.value
        self.candidates: tuple[Candidate, ...] = ()
        self.best: Timeline | None = None
        self.value: int | None = None
        self.history: list[Progress] = []
        self.notes: list[str] = []
        self.doing = "bounds"

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.started

    @property
    def passes(self) -> int:
        """About how many passes a schedule has."""
        return 3 * sum(map(len, self.problem.microbatches_of))

    def done(self) -> bool:
        """Whether nothing is left to search: proved within the gap asked for, the target settled, or told to stop."""
        close = self.value is not None and gap(self.value, self.lower_bound) <= self.limits.gap
        return close or self.target_settled() or self.stop.is_set()

    def target_settled(self) -> bool:
        """Whether it is known if the target can be met."""
        target = self.limits.target
        met = target is not None and self.value is not None and self.value <= target
        return met or (target is not None and self.lower_bound > target)

    def left(self, share: float = 1.0) -> float:
        """The seconds that are left of the time limit, and no more than this share of it."""
        return min(self.limits.seconds * share, self.limits.seconds - self.seconds)

    def hear(self, timeline: Timeline | None, bound: int) -> None:
        """What CP-SAT reports, while it runs and at its end."""
        if timeline is not None:
            self.offer(timeline)
        self.raise_bound(bound)

    def offer_order(self, schedule: Schedule) -> Timeline | None:
        """Times for an order, kept if they are better; the best timeline if this one is as good."""
        timeline = best_times(self.problem, schedule)
        return timeline if self.offer(timeline) == self.value else None

    def offer(self, timeline: Timeline) -> int:
        """Keep a timeline if it is better; its value. One that is not valid or lies below the bound is a defect."""
        value = measure(timeline).value(self.problem.objective)
        if self.value is not None and value >= self.value:
            return value
        violations = validate(timeline)
        if violations:
            raise Disagreement(f"{self.doing} gave a schedule that is not valid: {violations[0].text}")
        if value < self.lower_bound:
            raise Disagreement(f"{self.doing} found {value} ticks, below the bound of {self.lower_bound}")
        self.best, self.value = timeline, value
        self.tell()
        return value

    def raise_bound(self, bound: int, devices: Sequence[int] | None = None) -> None:
        """A bound that CP-SAT proved becomes the certificate where it beats those with an argument in words.

        `devices` are those whose rules it takes to prove it; all of them unless said.
        """
        if bound <= self.lower_bound:
            return
        strongest = self.certificates[0]
        model = "the exact model"
        if devices is not None and len(devices) < self.problem.devices:
            model += f" of devices {', '.join(map(str, devices))}, the others being mere delays,"
        text = (
            f"CP-SAT searched {model} to the end of every branch below {amount(self.problem, bound)} and found "
            f"no schedule there. The strongest argument in words gives {amount(self.problem, strongest.value)}: "
            f"{strongest.text}"
        )
        self.claim(Certificate("exhaustive search", bound, text))

    def argue(self, certificate: Certificate) -> None:
        """An argument like those known at the start; the strongest of them counts."""
        self.certificates = sorted([*self.certificates, certificate], key=lambda one: -one.value)
        self.claim(certificate)

    def claim(self, certificate: Certificate) -> None:
        """Keep a certificate that beats those before it; one above a schedule is a defect in this tool."""
        if self.value is not None and certificate.value > self.value:
            raise Disagreement(
                f"{certificate.kind}: a bound of {certificate.value} ticks, above a schedule of {self.value}"
            )
        if certificate.value > self.lower_bound:
            self.lower_bound, self.certificate = certificate.value, certificate
            self.tell()

    def tell(self) -> None:
        moment = Progress(self.seconds, self.value, self.lower_bound, self.doing)
        last = self.history[-1] if self.history else None
        if last is None or (last.value, last.lower_bound) != (moment.value, moment.lower_bound):
            self.history.append(moment)
        self.report(moment)

    def infeasible(self, reason: str) -> Solution:
        certificate = self.certificate
        return Solution(
            self.problem, Status.INFEASIBLE, self.lower_bound, certificate, reason=reason, wall_seconds=self.seconds
        )

    def solution(self) -> Solution:
        """The result so far."""
        best, status = self.best, Status.UNKNOWN
        if best is not None:
            status = Status.OPTIMAL if self.value == self.lower_bound else Status.FEASIBLE
        return Solution(
            problem=self.problem,
            status=status,
            lower_bound=self.lower_bound,
            certificate=self.certificate,
            timeline=best,
            metrics=measure(best) if best is not None else None,
            candidates=self.candidates,
            history=tuple(self.history),
            wall_seconds=self.seconds,
            interrupted=self.stop.is_set(),
            notes=tuple(self.notes),
        )
