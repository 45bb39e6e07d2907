"""State of a search at one moment, as an immutable record with functions that return the changed state."""

from __future__ import annotations

from dataclasses import dataclass, replace

from pipesched.errors import defect_note
from pipesched.problem.attainable_spans import Value
from pipesched.problem.formatting import amount
from pipesched.problem.problem import Problem
from pipesched.results.certificate import Certificate
from pipesched.results.solution import Progress
from pipesched.schedule.timeline import Timeline

OF_BARE_TIME = Certificate("none", 0, "No time is below zero.")


@dataclass(frozen=True)
class State:
    """Best timeline and its value in ticks of the problem, certificate of the lower bound, notes, and history.

    Timeline and value are None before the first schedule. `certificates` are all with an argument for the user,
    strongest first; `distrusted` are the kinds of certificates of which one was found wrong. `history` has the moments
    at which value or bound changed, earliest first. No state has a lower bound above its value.
    """

    problem: Problem
    certificate: Certificate
    certificates: tuple[Certificate, ...]
    notes: tuple[str, ...]
    timeline: Timeline | None = None
    value: Value | None = None
    distrusted: frozenset[str] = frozenset()
    history: tuple[Progress, ...] = ()

    @property
    def lower_bound(self) -> Value:
        return self.certificate.value_ticks

    def with_timeline(self, timeline: Timeline, value: Value) -> State:
        """Return the state with a valid timeline of this value in ticks, if it is better than the best.

        Bounds above the value are wrong: all certificates of these kinds are dropped, and a note is added.
        """
        if self.value is not None and value >= self.value:
            return self
        state = replace(self, timeline=timeline, value=value)
        while state.lower_bound > value:
            state = state._without_wrong(state.certificate, value)
        return state

    def with_argument(self, certificate: Certificate) -> State:
        """Return the state with a further certificate in `certificates`, unless its kind is distrusted.

        It also becomes the certificate of the lower bound if it is the strongest.
        """
        if certificate.kind in self.distrusted:
            return self
        certificates = tuple(sorted([*self.certificates, certificate], key=lambda one: -one.value_ticks))
        return replace(self, certificates=certificates).with_certificate(certificate)

    def with_certificate(self, certificate: Certificate) -> State:
        """Return the state with this certificate of the lower bound, if it is stronger and its kind is not distrusted.

        If it is above the value of the known schedule, all of its kind are dropped as wrong instead.
        """
        if certificate.value_ticks <= self.lower_bound or certificate.kind in self.distrusted:
            return self
        if self.value is not None and certificate.value_ticks > self.value:
            return self._without_wrong(certificate, self.value)
        return replace(self, certificate=certificate)

    def without(self, kind: str) -> State:
        """Return the state without certificates of this kind, now and later; the bound is 0 if none is left."""
        certificates = tuple(one for one in self.certificates if one.kind != kind) or (OF_BARE_TIME,)
        certificate = certificates[0] if self.certificate.kind == kind else self.certificate
        distrusted = self.distrusted | {kind}
        return replace(self, certificate=certificate, certificates=certificates, distrusted=distrusted)

    def with_note(self, text: str) -> State:
        return self if text in self.notes else replace(self, notes=(*self.notes, text))

    def with_moment(self, moment: Progress) -> State:
        """Return the state with a further entry of the history, without timeline, if value or bound changed."""
        last = self.history[-1] if self.history else None
        if last is not None and (last.value, last.lower_bound) == (moment.value, moment.lower_bound):
            return self
        return replace(self, history=(*self.history, replace(moment, timeline=None)))

    def _without_wrong(self, certificate: Certificate, value: Value) -> State:
        claimed, has = amount(self.problem, certificate.value_ticks), amount(self.problem, value)
        text = (
            f"the bound of {claimed} by {certificate.name} is above a valid schedule of {has}; bounds of this kind are "
            f"left out. It was: {certificate.text}"
        )
        return self.with_note(defect_note(text)).without(certificate.kind)
