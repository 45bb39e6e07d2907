"""State of a plan search over all placements: the best plan, the bound, and the test if the search is done."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from threading import Event

from heuristics.catalogue import schedule_named
from pipesched.errors import Disagreement, defect_note, left_out_note
from pipesched.layers.plan_problem import PlanProblem
from pipesched.results.gap import gap
from pipesched.results.plan import PlanCandidate
from solver.construction.timing import retimed
from solver.limits import Limits
from solver.planning.budget import Budget, SecondsOrWork
from solver.planning.progress import PlanProgress, Report
from solver.planning.search.better_plans import BetterPlans
from solver.planning.search.choice_search import ChoiceSearch
from solver.planning.search.evenness import evened

# After this many steps that ended by errors, a placement is searched no further.
_MOST_FAILURES = 3


class Placements:
    """State of a plan search over all placements of a plan problem: one `ChoiceSearch` each, in `choices`.

    `best` is the best plan of any placement, `bound` the lower bound over all; `report` is called at every step.
    `better` has for each placement its improvement searches, `notes` are on errors and defects. The search ends with
    `limits`, or once `stop` is set. Raises `BadInput` for an unknown schedule in the problem.
    """

    def __init__(self, problem: PlanProblem, limits: Limits, report: Report, stop: Event) -> None:
        self.problem, self.limits, self._report = problem, limits, report
        self.budget = Budget(limits, stop)
        self.best: PlanCandidate | None = None
        self.notes = list(problem.notes)
        self._phase: str | None = None  # until the search begins there is none, and nothing to report
        for name in problem.schedules:
            schedule_named(name)
        self.choices = [ChoiceSearch(problem, choice, self.budget, self._offer) for choice in problem.choices]
        self.better = {each.choice: BetterPlans(each) for each in self.choices}

    @property
    def bound(self) -> Fraction | None:
        """Lower bound in ticks over all plans; None if it is proved that no placement has one."""
        bounds = [each.bound for each in self.choices if each.bound is not None]
        if self.best is not None:
            bounds.append(self.best.value / self.problem.tick)
        return min(bounds, default=None)

    def start_from(self, known: PlanCandidate) -> None:
        """Offer a plan of this problem or one with other costs, retimed with the costs here.

        Nothing is done if the number of layers differs, or its placement is not among those here or is settled. For a
        period its partition is searched instead.
        """
        if sum(known.partition.counts) != len(self.problem.model.sequence):
            return
        for each in self.choices:
            if each.choice == known.choice and known.partition.stages == each.stages and not each.settled:
                if self.problem.objective.repeats:
                    each.offer_solved(known.partition, each.solve(known.partition, self.budget.least_step))
                    continue
                timeline = retimed(self.problem.problem(known.choice, known.partition), known.timeline)
                if timeline is not None:
                    each.offer(PlanCandidate(known.choice, known.partition, timeline, known.schedule))

    def open(self) -> list[ChoiceSearch]:
        """Return the searches of placements that may still have a better plan and did not fail too often."""
        return [each for each in self.choices if not each.settled and each.failures < _MOST_FAILURES]

    def without_plan(self) -> Iterator[ChoiceSearch]:
        """Yield open placements without a plan, until a plan of any is known and the time is over.

        With a time limit of 0 all are yielded.
        """
        for choice in self.open():
            if self.best is not None and self.budget.whole > 0 and self.budget.over():
                return
            if choice.best is None:
                yield choice

    def relax(self, choice: ChoiceSearch, most: SecondsOrWork) -> None:
        """Improve the bound of a placement within `most` seconds or work units, and set the partition to schedule next.

        The value of the best plan of all placements is the limit of the search. Errors become notes.
        """
        with self.defects_noted(choice):
            choice.relax(most, None if self.best is None else self.best.value)

    @contextmanager
    def defects_noted(self, choice: ChoiceSearch) -> Iterator[None]:
        """Context in which an error ends the current step and is recorded as a note.

        A `Disagreement` (a bound above a plan's value) discards the bounds of the placement and ends its search; other
        errors count as its failures.
        """
        try:
            yield
        except Disagreement as defect:
            self._note(defect_note(str(defect), defect))
            choice.distrust()
        except Exception as error:
            self._note(left_out_note(f"a step of the search on {choice.choice}", error))
            choice.failures += 1

    @contextmanager
    def errors_noted(self, step: str) -> Iterator[None]:
        """Context in which an error ends the named step of the whole search and is recorded as a note."""
        try:
            yield
        except Exception as error:
            self._note(left_out_note(step, error))

    def _note(self, text: str) -> None:
        if text not in self.notes:
            self.notes.append(text)

    def done(self) -> bool:
        """True if the time is over, no placement is left, or no better plan can exist within the gap limit."""
        bound = self.bound
        if self.budget.over() or not self.open() or bound is None:
            return True
        if self.best is None:
            return False
        value = self.best.value / self.problem.tick
        return bound >= value or gap(value, bound) <= self.limits.gap

    def _offer(self, candidate: PlanCandidate) -> None:
        """Take a plan of some placement as the best of all, if it is.

        A value below that placement's bound discards the bound.
        """
        value = candidate.value / self.problem.tick
        for each in self.choices:
            if each.choice == candidate.choice and each.bound is not None and each.bound > value:
                self._note(defect_note(f"{each.choice}: a bound of {each.bound} ticks is above a plan of {value}"))
                each.distrust()
        if self.best is None or candidate.value < self.best.value:
            self.best = candidate
            if self._phase is not None:
                self.say(self._phase)

    def even_out(self) -> None:
        """Replace the best plan by a more even one (`evened`) that is no worse, and that of its placement with it.

        Nothing is done for the objective period, without a plan, or once the user has stopped the search.
        """
        owner = next((each for each in self.choices if each.best is self.best), None)
        if self.problem.objective.repeats:
            return
        if owner is not None and self.best is not None and not self.budget.stop.is_set():
            with self.errors_noted("a more even plan"):
                for found in evened(owner, self.best):
                    self.best = owner.best = found

    def say(self, phase: str) -> None:
        """Report the progress of the search, now in this phase."""
        self._phase = phase
        bound = self.bound
        self._report(
            PlanProgress(
                self.budget.seconds,
                None if self.best is None else self.best.value,
                Fraction(0) if bound is None else bound * self.problem.tick,
                sum(each.settled for each in self.choices),
                len(self.choices),
                phase,
            )
        )
