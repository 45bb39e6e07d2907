"""The `plan` function: search partition, placement, recomputation and order together, with one bound over all plans."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from threading import Event

from pipesched.arguments import A_PLAN_PROBLEM, refuse_other
from pipesched.layers.plan_problem import PlanProblem
from pipesched.problem.attainable_spans import simplest
from pipesched.results.certificate import Certificate
from pipesched.results.plan import Plan, PlanCandidate, VariantResult
from pipesched.results.solution import Status
from solver.limits import Limits, limits_from
from solver.parameters import tunable, tuned
from solver.planning.bounds_of_plans import KIND, by_load, lower_bound_clause, of_all
from solver.planning.infeasible import reasons, why_no_plan
from solver.planning.lacking import what_is_lacking
from solver.planning.most_free import plan_leaving_most
from solver.planning.progress import Report
from solver.planning.race import RaceEntry, raced
from solver.planning.search.evenness import EVENNESS
from solver.planning.search.free_orders import FreeOrders
from solver.planning.search.periods import Periods
from solver.planning.search.placements import Placements
from solver.planning.search.published_orders import PublishedOrders


@dataclass(frozen=True)
@tunable
class PlanParams:
    """Times allowed beyond the time limit, since steps of a plan search on long problems can take seconds."""

    least_seconds: float = tuned(1.0, "s that a search has, however short its limit", 0, 10)
    evening_seconds: float = tuned(
        0.5, "s that the walk to a more even plan has, however little is left, where all of it takes no longer", 0, 10
    )
    reason_seconds: float = tuned(1.0, "s, however little is left, for the reason why there is no plan", 0, 10)


_PARAMS = PlanParams()


def plan(
    problem: PlanProblem,
    limits: Limits | None = None,
    report: Report | None = None,
    stop: Event | None = None,
    start: PlanCandidate | None = None,
    *,
    seconds: float | None = None,
) -> Plan:
    """Return the best plan found, with a lower bound over all plans that the problem allows.

    `seconds` is the time limit and replaces that of `limits` (60 s if neither is given). `report` is called at every
    step; setting `stop` ends the search with the best plan found. With a deterministic limit the same problem and seed
    give the same plan on every run. `start` is a plan to start from, of this problem or one with other costs: where it
    is valid here, the result is never worse. Raises `BadInput` for an unknown schedule, for published schedules with
    the objective period, for wrong limits, and for an argument that is no plan problem.
    """
    refuse_other("plan", problem, PlanProblem, A_PLAN_PROBLEM)
    limits = limits_from("plan", limits, seconds)
    return plan_from([] if start is None else [start], problem, limits, report or (lambda _: None), stop or Event())


def plan_from(
    starts: Iterable[PlanCandidate], problem: PlanProblem, limits: Limits, report: Report, stop: Event
) -> Plan:
    """Return the best plan found, as `plan` does, by a search that starts from any number of plans (`starts`).

    The variants of a problem are searched in a race. Where free memory is maximised before the time, the most free
    memory is searched first. Raises `BadInput` for an unknown schedule, and for published schedules with the objective
    period.
    """
    if problem.leaves is not None:
        return plan_leaving_most(plan_from, problem, limits, report, stop)
    given = list(starts)
    if problem.variants:
        rows = raced(lambda own, *how: plan_from([*given, *own], *how), problem.variants, limits, report, stop)
        # A variant without a certificate has no plan at all: it says nothing of those that may have one.
        known = [row.plan for row in rows if row.plan is not None and row.plan.certificate is not None]
        last = [row for row in rows if row.failed] or rows
        if known:
            return _with_variants(problem, known[0], rows, stop)
        if last[0].plan is not None:
            return _with_variants(problem, last[0].plan, rows, stop)
        problem = last[0].problem
    placements = Placements(problem, limits, report, stop)
    search = _search(placements)

    def begin() -> None:
        for start in given:
            with placements.errors_noted("the plan to start from"):
                placements.start_from(start)
        if placements.best is not None:
            placements.say("the plans to start from")

    def run() -> None:
        with placements.errors_noted("the search for plans"):
            search.run()

    if problem.objective.repeats:  # a pattern is searched for each of them
        placements.budget.within(begin, _PARAMS.least_seconds)
    else:
        begin()  # neither the time limit nor the user's stop loses a plan that is known
    placements.budget.within(run, _PARAMS.least_seconds)
    short = EVENNESS.steps * placements.budget.slowest_plan <= _PARAMS.evening_seconds
    placements.budget.within(placements.even_out, _PARAMS.evening_seconds if short else 0.0)
    return _result(placements)


def _search(placements: Placements) -> PublishedOrders | FreeOrders | Periods:
    """Return the search that suits the problem: for a period, for published orders, or for any orders."""
    if placements.problem.objective.repeats:
        return Periods(placements)
    return PublishedOrders(placements) if placements.problem.schedules else FreeOrders(placements)


def _with_variants(asked: PlanProblem, found: Plan, rows: Sequence[RaceEntry[str]], stop: Event) -> Plan:
    """Return `found`, the plan of the best variant, with the results of all variants (`rows`) and a bound over them."""
    seconds = sum(row.plan.wall_seconds for row in rows if row.plan is not None)
    known = [row for row in rows if row.plan is None or row.plan.certificate is not None]
    variants = tuple(
        VariantResult(
            row.key,
            None if row.plan is None else row.plan.value,
            row.bound if row in known else None,
            row.dropped,
            by_load(row.problem) if row.plan is None else row.plan.choices,
        )
        for row in rows
    )
    found = replace(found, asked=asked, variants=variants, wall_seconds=seconds, interrupted=stop.is_set())
    if found.certificate is None:
        return found
    least = min([row.bound for row in known] + ([] if found.value is None else [found.value]))
    clauses = "; ".join(f"{row.key}: {lower_bound_clause(found.problem, row.bound)}" for row in known)
    status = Status.UNKNOWN if found.value is None else Status.OPTIMAL if least == found.value else Status.FEASIBLE
    text = f"{clauses}. {found.certificate.text}"
    return replace(found, status=status, certificate=Certificate(KIND, simplest(least / found.problem.tick), text))


def _result(search: Placements) -> Plan:
    """Return the result of a search that is over: best plan, status, certificate, notes, or why there is no plan."""
    bound, best = search.bound, search.best
    reason = ""
    with search.errors_noted("why there is no plan"):
        if bound is None:
            why = partial(why_no_plan, search.problem, search.choices, search.budget)
            reason = search.budget.within(why, _PARAMS.reason_seconds) or reasons(search.choices)
        elif best is None:
            reason = search.budget.within(partial(what_is_lacking, search.problem), _PARAMS.reason_seconds) or ""
    status = Status.INFEASIBLE if bound is None else Status.UNKNOWN
    if best is not None and bound is not None:
        status = Status.OPTIMAL if best.value / search.problem.tick == bound else Status.FEASIBLE
    return Plan(
        search.problem,
        status,
        None if bound is None else _certificate(search, bound),
        tuple(each.result() for each in search.choices),
        best,
        reason,
        tuple(dict.fromkeys([*search.notes, *(note for each in search.choices for note in each.notes)])),
        search.budget.seconds,
        search.budget.stop.is_set(),
    )


def _certificate(search: Placements, bound: Fraction) -> Certificate:
    """Return the certificate of `bound` (ticks), the least of all placements, with the argument of each."""
    clauses = []
    for each in search.choices:
        if each.bound is None:
            clauses.append(f"{each.choice}: no plan, {each.reason}")
            continue
        clauses.append(
            f"{each.choice}: {lower_bound_clause(search.problem, each.bound * search.problem.tick)} ({each.argument})"
        )
    return Certificate(KIND, simplest(bound), f"{of_all(search.problem)}: {'; '.join(clauses)}.")
