"""Check of one cell of a sweep, from its store alone: the schedule or plan, the bound, or that there is no schedule."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction

from commands.reports.checks.plan_check import broken_plan, plan_findings, plan_value, without_name
from commands.reports.checks.schedule_check import broken_rules
from pipesched.checking.check import check_bound
from pipesched.checking.finding import Finding, Verdict
from pipesched.checking.free_memory import check_most_left
from pipesched.checking.plan_check import check_plan_bound, weakest
from pipesched.errors import BadInput
from pipesched.files.problems.document import problem_document
from pipesched.layers.plan_problem import PlanProblem
from pipesched.problem.attainable_spans import simplest
from pipesched.problem.feasibility import why_infeasible
from pipesched.problem.free_memory import reserving
from pipesched.problem.problem import Problem
from pipesched.results.certificate import Certificate
from pipesched.results.evidence_document import evidence_from
from pipesched.results.plan_evidence import TooManyStages
from pipesched.results.solution import Status
from pipesched.schedule.metrics import measure
from pipesched.sweeps.outcome import Outcome
from pipesched.sweeps.packed import unpack
from pipesched.sweeps.plan_evidence import placements_of, plan_answer_of
from pipesched.sweeps.stored import StoredCell


@dataclass(frozen=True)
class CellCheck:
    """The result of checking a sweep's cell. `skipped` gives the reason if nothing was checked.

    `wrong` lists the faults of its schedule or plan. `findings` are about its bound: one, or for a plan one for each
    placement, with those on the free memory where that is maximised; empty where no bound is stated.
    """

    cell: StoredCell
    skipped: str = ""
    wrong: list[str] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)

    @property
    def verdict(self) -> Verdict | None:
        """The weakest verdict of the findings; None without findings."""
        return weakest(self.findings) if self.findings else None

    @property
    def holds(self) -> bool:
        return not self.wrong and self.verdict is not Verdict.REFUSED

    @property
    def optimal(self) -> bool:
        """True if the cell's bound was verified and its schedule reaches it.

        Nothing must be wrong with the schedule or plan; and where free memory is maximised first, its amount must be
        proved.
        """
        known = self.cell.outcome
        reached = known is not None and known.value is not None and known.value == known.lower_bound
        amount = known is None or known.free is None or known.free.proved
        return reached and amount and not self.wrong and self.verdict is Verdict.VERIFIED


def check_cell(cell: StoredCell) -> CellCheck:
    """Check a cell from the content of the store: nothing is solved, and no other file is read.

    One that is refused or not solved has nothing to check. Damaged data is an entry of `wrong`, no error.
    """
    if cell.refused:
        return CellCheck(cell, "its values do not go together")
    if cell.outcome is None:
        return CellCheck(cell, "not solved")
    try:
        problem = cell.problem()
        if problem is None:
            text = "an older version of pipesched wrote the store without its problems: run the sweep with a new store"
            return CellCheck(cell, findings=[Finding(Verdict.NOT_VERIFIED, text)])
        return _checked(cell, problem, cell.outcome)
    except (BadInput, KeyError, TypeError, ValueError) as error:
        return CellCheck(cell, wrong=[f"store: {error}"])


def _checked(cell: StoredCell, problem: Problem | PlanProblem, known: Outcome) -> CellCheck:
    if known.status is Status.INFEASIBLE:
        return CellCheck(cell, findings=_without_schedule(problem, known))
    if isinstance(problem, PlanProblem):
        return _plan(cell, problem, known)
    bound = known.lower_bound
    findings = [] if bound is None else [_bound(_bounded(problem, known), known, bound)]
    if known.free is not None:
        findings.append(check_most_left(problem, known.free.bound))
    return CellCheck(cell, wrong=_wrong(problem, known), findings=findings)


def _without_schedule(problem: Problem | PlanProblem, known: Outcome) -> list[Finding]:
    """Return the findings on a cell that is stated to have no schedule."""
    if isinstance(problem, Problem):
        reason = why_infeasible(problem)
        if reason is not None:
            return [Finding(Verdict.VERIFIED, f"it has no schedule: {reason}")]
    elif (
        not problem.variants
        and (choices := placements_of(known).choices)
        and all(isinstance(one.evidence, TooManyStages) for one in choices)
    ):
        return check_plan_bound(problem, Fraction(0), choices)
    return [Finding(Verdict.NOT_VERIFIED, f"it has no schedule: {known.reason}")]


def _plan(cell: StoredCell, problem: PlanProblem, known: Outcome) -> CellCheck:
    answer = plan_answer_of(problem, known)
    if answer is not None:
        wrong = broken_plan(answer)
        if not wrong and plan_value(answer) != known.value:
            wrong.append(f"claim: a value of {known.value}; its plan has {plan_value(answer)}")
        return CellCheck(cell, wrong=wrong, findings=plan_findings(answer))
    return CellCheck(cell, findings=check_plan_bound(problem, known.lower_bound or Fraction(0), *placements_of(known)))


def _bounded(problem: Problem, known: Outcome) -> Problem:
    """Return the problem that a cell's bound is about.

    If free memory is the objective, the amount found is reserved in it.
    """
    if problem.objective.leaves is None:
        return problem
    return reserving(problem, 0 if known.free is None else int(known.free.value / problem.resolution))


def _bound(problem: Problem, known: Outcome, bound: Fraction) -> Finding:
    evidence = None if known.evidence is None else evidence_from(known.evidence)
    ticks = simplest(bound / problem.tick)
    return check_bound(problem, Certificate(known.kind, ticks, known.claim, None, evidence))


def _wrong(problem: Problem, known: Outcome) -> list[str]:
    """Return the faults of a cell's schedule, and of the figures stated for it."""
    if known.value is not None and known.lower_bound is not None and known.lower_bound > known.value:
        return [f"claim: a lower bound of {known.lower_bound} above the value of {known.value}"]
    if known.schedule is None:
        return [] if known.value is None else ["schedule: there is none in the store"]
    file = unpack(known.schedule)
    own = file.timeline.problem
    if without_name(problem_document(own)) != without_name(problem_document(problem)):
        return ["problem: the schedule is not one of this cell"]
    found = broken_rules(file)
    if file.free != known.free:
        found.append("claim: free memory other than its schedule file states")
    if found or problem.objective.repeats:
        return found
    value = measure(file.timeline).value_ticks(problem.objective) * own.tick
    return [] if value == known.value else [f"claim: a value of {known.value}; its schedule has {value}"]
