"""The state of a search at one moment as an immutable record, and the changes it can undergo."""

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
    """The best timeline with its value (ticks of the problem), the certificate of the lower bound, and the notes.

    `certificates` are those with an argument in words, strongest first; `distrusted` are kinds of certificates that
    were found wrong. No state has a lower bound above its value.
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
        """With a valid timeline, if it is better; every kind of argument that claims more than it has is dropped."""
        if self.value is not None and value >= self.value:
            return self
        state = replace(self, timeline=timeline, value=value)
        while state.lower_bound > value:
            state = state._without_wrong(state.certificate, value)
        return state

    def with_argument(self, certificate: Certificate) -> State:
        """With one more certificate with an argument in words."""
        if certificate.kind in self.distrusted:
            return self
        certificates = tuple(sorted([*self.certificates, certificate], key=lambda one: -one.value_ticks))
        return replace(self, certificates=certificates).with_certificate(certificate)

    def with_certificate(self, certificate: Certificate) -> State:
        """With a certificate that beats those before it, unless its kind is distrusted; a wrong one is dropped."""
        if certificate.value_ticks <= self.lower_bound or certificate.kind in self.distrusted:
            return self
        if self.value is not None and certificate.value_ticks > self.value:
            return self._without_wrong(certificate, self.value)
        return replace(self, certificate=certificate)

    def without(self, kind: str) -> State:
        """With the strongest certificate of another kind; that of bare time is always right."""
        certificates = tuple(one for one in self.certificates if one.kind != kind) or (OF_BARE_TIME,)
        certificate = certificates[0] if self.certificate.kind == kind else self.certificate
        distrusted = self.distrusted | {kind}
        return replace(self, certificate=certificate, certificates=certificates, distrusted=distrusted)

    def with_note(self, text: str) -> State:
        return self if text in self.notes else replace(self, notes=(*self.notes, text))

    def with_moment(self, moment: Progress) -> State:
        """With a moment of the history, where value or bound differ from those of the last one."""
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
