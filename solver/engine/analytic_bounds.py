"""Analytic lower bounds, each with an argument in words, with which a search begins."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from threading import Event

from pipesched.deadline import Deadline, within
from pipesched.errors import left_out_note
from pipesched.problem.feasibility import why_infeasible
from pipesched.problem.problem import Problem
from pipesched.results.certificate import Certificate
from solver.bounds.analytic.catalogue import Certify
from solver.bounds.saving.certificates import certificates
from solver.engine.clock import Clock
from solver.engine.incumbent.state import OF_BARE_TIME
from solver.parameters import tunable, tuned


@dataclass(frozen=True)
@tunable
class AnalyticBounds:
    """Choice of analytic bounds: the load always; others unless in `left_out` or slower than `share` of the limit."""

    share: float = tuned(0.2, "of the time limit", 0, 1)
    load_only: bool = False
    left_out: frozenset[str] = frozenset()

    def certificates(self, problem: Problem, clock: Clock, stop: Event) -> tuple[list[Certificate], list[str]]:
        """Return the certificates, strongest first, and notes on bounds that took too long or failed.

        No bound is started after a stop. For an infeasible problem only the load is given: the other arguments count
        passes that the memory would have to allow.
        """
        none = why_infeasible(problem) is not None
        until = inf if clock.counts_work else clock.share(self.share)
        late, notes = list[str](), list[str]()

        def in_time(name: str, certify: Certify) -> list[Certificate]:
            if none or name in self.left_out or stop.is_set():
                return []
            try:
                found = within(Deadline.after(until - clock.seconds, stop), certify)
            except Exception as error:
                notes.append(left_out_note(f"the bound {name!r}", error))
                return []
            late.extend([name] if found is None else [])
            return found or []

        try:
            found = certificates(problem, problem.objective, in_time)
        except Exception as error:
            notes.append(left_out_note("analytic bounds", error))
            found = []
        if late and not stop.is_set():
            notes.append(f"bounds left out, since they take too long for the time limit: {', '.join(late)}")
        return [one for one in found if one.kind == "load" or not self.load_only] or [OF_BARE_TIME], notes
