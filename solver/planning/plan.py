"""`plan`: partition, placement, recomputation and order together, with one lower bound over all plans allowed."""

from __future__ import annotations

from fractions import Fraction
from threading import Event

from pipesched.arguments import A_PLAN_PROBLEM, refuse_other
from pipesched.layers.plan_problem import PlanProblem
from pipesched.problem.attainable_spans import simplest
from pipesched.problem.formatting import plain
from pipesched.results.certificate import Certificate
from pipesched.results.plan import Candidate, Plan
from pipesched.results.solution import Status
from solver.limits import Limits, limits_from
from solver.planning.infeasible import why_no_plan
from solver.planning.progress import Report
from solver.planning.search.free_orders import FreeOrders
from solver.planning.search.placements import Placements
from solver.planning.search.published_orders import PublishedOrders


def plan(
    problem: PlanProblem,
    limits: Limits | None = None,
    report: Report | None = None,
    stop: Event | None = None,
    start: Candidate | None = None,
    *,
    seconds: float | None = None,
) -> Plan:
    """The best plan found, and what is proved of all plans that the problem allows.

    `seconds` is the time limit, instead of that of the `limits`. `report` is called at every step; setting `stop` ends
    the search with what was found. With a deterministic limit the same problem and seed give the same plan on every
    run. `start` is a plan to go on from, of this problem or one with other costs: where it is valid here, the result is
    never worse. `BadInput` for an unknown schedule, and for what is no model.
    """
    refuse_other("plan", problem, PlanProblem, A_PLAN_PROBLEM)
    limits = limits_from("plan", limits, seconds)
    placements = Placements(problem, limits, report or (lambda _: None), stop or Event())
    if start is not None:
        placements.start_from(start)
    (PublishedOrders if problem.schedules else FreeOrders)(placements).run()
    placements.even_out()
    return _result(placements)


def _result(search: Placements) -> Plan:
    """What is known when the search is over."""
    bound, best = search.bound, search.best
    reason = why_no_plan(search.problem, search.choices, search.budget) if bound is None else ""
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
        tuple(search.notes),
        search.budget.seconds,
        search.budget.stop.is_set(),
    )


def _certificate(search: Placements, bound: Fraction) -> Certificate:
    """The least over the placements, each with what was proved of it."""
    said, unit = [], search.problem.time_unit
    for each in search.choices:
        if each.bound is None:
            said.append(f"{each.choice}: no plan, {each.reason}")
            continue
        value = f"{plain(float(each.bound * search.problem.tick))} {unit}".rstrip()
        said.append(f"{each.choice}: none is below {value} ({each.argument})")
    kind = "exhaustive search by CP-SAT over all partitions"
    return Certificate(kind, simplest(bound), "Of all plans: " + "; ".join(said) + ".")
