"""The incumbent: the best schedule and the lower bound of a search, with checks of everything offered or claimed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from threading import Lock

from pipesched.checking.check import check_bound
from pipesched.checking.finding import Finding, Verdict
from pipesched.errors import Disagreement, defect_note, is_defect, left_out_note, raised
from pipesched.problem.attainable_spans import Value
from pipesched.problem.formatting import amount
from pipesched.problem.problem import Problem
from pipesched.problem.quantities import DeviceId
from pipesched.results.certificate import Certificate
from pipesched.results.evidence import Refutation
from pipesched.results.solution import Progress
from pipesched.schedule.rescale import value_of
from pipesched.schedule.timeline import Timeline
from pipesched.validation.validator import validate
from solver.backends.cp_sat import EXHAUSTIVE
from solver.engine.clock import Clock
from solver.engine.incumbent.state import OF_BARE_TIME, State

Report = Callable[[Progress], None]


class Incumbent:
    """Keep the best valid schedule and the best bound of a search; refuse what cannot be right.

    An invalid schedule, or a bound above the value of a schedule, is a defect of this program: it is left out, in the
    case of a bound with all bounds of its kind, and a note informs the user. `state` is one immutable record, replaced
    in a single assignment, since threads read it at any moment.

    `certificates` are the bounds known at the start, at least one, strongest first. `report` is called with the state
    at each improvement; `phase` is the name of the current step in these reports.
    """

    def __init__(self, problem: Problem, certificates: Sequence[Certificate], clock: Clock, report: Report) -> None:
        self._state = State(problem, certificates[0], tuple(certificates), problem.notes)
        self._problem, self._clock, self._report = problem, clock, report
        self._replacing = Lock()
        self._checked: Certificate | None = None
        self.phase = "bounds"

    @property
    def state(self) -> State:
        """The best schedule, bound, notes and history at this moment, as an immutable record."""
        return self._state

    @property
    def timeline(self) -> Timeline | None:
        """Timeline of the best schedule, which may be in finer ticks than the problem's; None if there is none."""
        return self._state.timeline

    @property
    def value(self) -> Value | None:
        """Value of the best schedule in ticks of the problem; None if there is none."""
        return self._state.value

    @property
    def lower_bound(self) -> Value:
        """Best lower bound in ticks of the problem."""
        return self._state.lower_bound

    def enter(self, phase: str) -> None:
        """Set the name of the step that begins now (`phase`), used in reports from here on, and report the state."""
        self.phase = phase
        self._replace(lambda state: state, report=True)

    def note(self, text: str) -> None:
        """Add a note for the user, once."""
        self._replace(lambda state: state.with_note(text))

    def note_defects_of(self, other: Incumbent) -> None:
        """Copy the notes on defects of this program from the incumbent of a search of a related problem."""
        for text in filter(is_defect, other.state.notes):
            self.note(text)

    def offer(self, timeline: Timeline, by: str | None = None) -> Value:
        """Keep a timeline if it is valid and better than the best; return its value in ticks of the problem.

        The value is returned whether or not it is kept. A timeline that is no better is not validated; an invalid one
        is noted as a defect. If its value is below the lower bound, each bound above the value is wrong, and all bounds
        of these kinds are dropped. `by` is the name of the finder in reports, by default the current phase.
        """
        value = value_of(self._problem, timeline)
        if self.value is not None and value >= self.value:
            return value
        violations = validate(timeline)
        if violations:
            self.distrust(Disagreement(f"{by or self.phase} gave a schedule that is not valid: {violations[0].text}"))
        else:
            self._replace(lambda state: state.with_timeline(timeline, value), by=by)
        return value

    def argue(self, certificate: Certificate) -> None:
        """Add a certificate to those whose arguments the user sees; the strongest one becomes the lower bound."""
        self._replace(lambda state: state.with_argument(certificate))

    def claim(self, bound: Value, devices: Sequence[DeviceId] | None = None, by: str | None = None) -> None:
        """Record a bound proved by CP-SAT, in ticks, as the certificate if it is above the lower bound.

        `devices` are those whose constraints the proof uses; None: all. `by` is the name of the finder in reports, by
        default the current phase.
        """
        if bound <= self.lower_bound:
            return
        strongest = self._state.certificates[0]
        model = "the exact model"
        if devices is not None and len(devices) == self._problem.devices:
            devices = None
        if devices is not None:
            model += f" of devices {', '.join(map(str, devices))}, the others relaxed to delays,"
        text = (
            f"CP-SAT searched {model} to the end of every branch below {amount(self._problem, bound)} and found "
            f"no schedule there. The strongest analytic bound gives {amount(self._problem, strongest.value_ticks)}: "
            f"{strongest.text}"
        )
        evidence = Refutation(None if devices is None else tuple(devices))
        certificate = Certificate(EXHAUSTIVE, bound, text, None, evidence)
        self._replace(lambda state: state.with_certificate(certificate), by=by)

    def check_bound(self) -> None:
        """Check the current certificate from its evidence.

        If it is refused, note the defect and check the next strongest one.
        """
        while (certificate := self._state.certificate) not in (self._checked, OF_BARE_TIME):
            try:
                finding = check_bound(self._problem, certificate)
            except Exception as error:
                finding = Finding(Verdict.REFUSED, f"{certificate.name}: {raised(error)}")
            self.judge(certificate, finding)

    def judge(self, certificate: Certificate, finding: Finding) -> None:
        """Apply the verdict of a check: a refused certificate is noted as a defect and all of its kind are dropped.

        Any other is recorded as checked, so that `check_bound` does not check it again.
        """
        if finding.verdict is Verdict.REFUSED:
            text = f"a lower bound did not stand the check of its evidence: {finding.text}"
            self.distrust(Disagreement(text, certificate.kind))
        else:
            self._checked = certificate

    def distrust(self, defect: Disagreement) -> None:
        """Note a defect of this program, and drop all bounds of the kind that the defect names, if it names one."""
        text = defect_note(str(defect), defect)

        def change(state: State) -> State:
            noted = state.with_note(text)
            return noted if defect.kind is None else noted.without(defect.kind)

        self._replace(change)

    @contextmanager
    def defects_noted(self, subsolver: str | None = None) -> Iterator[None]:
        """Context in which an error becomes a note that names `subsolver` (by default the current phase).

        The search goes on.
        """
        try:
            yield
        except Exception as error:
            self.left_out(subsolver or self.phase, error)

    def left_out(self, subsolver: str, error: Exception) -> None:
        """Note that an error ended a subsolver; a `Disagreement` also drops the kind of bound that it names."""
        if isinstance(error, Disagreement):
            self.distrust(error)
        else:
            self.note(left_out_note(subsolver, error))

    def _replace(self, change: Callable[[State], State], report: bool = False, by: str | None = None) -> None:
        """Replace the state by `change(state)`, under a lock; report it if value or bound changed, or if `report`.

        `by` is the name of the finder in the report, by default the current phase.
        """
        with self._replacing:
            before, changed = self._state, change(self._state)
            value, tick = changed.value, changed.problem.tick
            value = None if value is None else value * tick
            found = value, changed.lower_bound * tick, by or self.phase, changed.timeline
            moment = Progress(self._clock.seconds, *found)
            improved = (changed.value, changed.lower_bound) != (before.value, before.lower_bound)
            self._state = changed.with_moment(moment) if report or improved else changed
        if report or improved:
            self._report(moment)
