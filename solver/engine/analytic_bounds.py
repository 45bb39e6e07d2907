"""Analytic lower bounds, each with an argument in words, with which a search begins."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from math import inf
from threading import Event

from pipesched.deadline import Deadline, within
from pipesched.errors import left_out_note, raised
from pipesched.problem.feasibility import why_infeasible
from pipesched.problem.problem import Problem
from pipesched.results.certificate import Certificate
from solver.bounds.analytic.catalogue import Certify
from solver.bounds.saving.certificates import certificates
from solver.engine.clock import Clock
from solver.engine.incumbent.state import OF_BARE_TIME
from solver.parameters import tunable, tuned

# The bound that is computed whatever time is left.
ALWAYS = "load"


@dataclass(frozen=True)
@tunable
class AnalyticBounds:
    """Source of the analytic bounds with which a search begins.

    Bounds whose names are in `left_out` are not computed, and what has not ended after `share` of the time limit is
    given up; the load bound is always computed to its end. With `load_only` all others are dropped.
    """

    share: float = tuned(0.2, "of the time limit", 0, 1)
    load_only: bool = False
    left_out: frozenset[str] = frozenset()

    def certificates(self, problem: Problem, clock: Clock, stop: Event) -> tuple[list[Certificate], list[str]]:
        """Return the certificates, strongest first, and notes for the user on bounds that took too long or failed.

        The time counts from the start of `clock`; where work is counted, none is given up. Bounds that fail with the
        same error, as by a relaxation that they share, have one note together. After `stop` is set, and for an
        infeasible problem, only the load bound is computed: the others count passes that the memory would have to
        allow. If there is no certificate, the one of a bound of 0 is returned.
        """
        none = why_infeasible(problem) is not None
        until = inf if clock.counts_work else clock.share(self.share)
        late, failed = list[str](), dict[str, tuple[Exception, dict[str, None]]]()

        def in_time(name: str, certify: Certify) -> list[Certificate]:
            always = name == ALWAYS
            if not always and (none or name in self.left_out or stop.is_set()):
                return []
            try:
                found = certify() if always else within(Deadline.after(until - clock.seconds, stop), certify)
            except Exception as error:
                failed.setdefault(raised(error), (error, {}))[1][name] = None
                return []
            late.extend([name] if found is None else [])
            return found or []

        try:
            found = certificates(problem, problem.objective, in_time)
        except Exception as error:
            found, notes = [], [left_out_note("analytic bounds", error)]
        else:
            notes = []
        notes += [left_out_note(_bounds(names), error) for error, names in failed.values()]
        if late and not stop.is_set():
            notes.append(f"bounds left out, since they take too long for the time limit: {', '.join(late)}")
        return [one for one in found if one.kind == ALWAYS or not self.load_only] or [OF_BARE_TIME], notes


def _bounds(names: Collection[str]) -> str:
    """Return the names of bounds as the subject of a note, as `the bounds 'A', 'B'`."""
    return f"the bound{'s' * (len(names) > 1)} {', '.join(map(repr, names))}"
