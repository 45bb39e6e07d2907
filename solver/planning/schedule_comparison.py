"""Comparison of published schedules on one model, each with its best partition and placement, and of any order."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache, partial
from threading import Event

from heuristics.building.patience import patience
from heuristics.catalogue import schedule_named
from pipesched.errors import DoesNotApply, left_out_note
from pipesched.layers.even import some_counts
from pipesched.layers.partition import Partition
from pipesched.layers.plan_problem import Choice, PlanProblem
from pipesched.problem.problem import Problem
from pipesched.results.plan import PlanCandidate
from pipesched.results.solution import Status
from pipesched.schedule.microbatch_groups import ORDER, group_sizes, order_of
from solver.limits import Limits
from solver.parameters import tunable, tuned
from solver.planning.bounds_of_plans import with_bounds_of
from solver.planning.compared_schedule import ComparedSchedule
from solver.planning.lacking import least_lacking
from solver.planning.plan import plan, plan_from
from solver.planning.progress import PlanProgress, Report
from solver.planning.time_shares import TimeShares, named


@dataclass(frozen=True)
@tunable
class ComparedPlansParams:
    """Shares of the time limit of a comparison: schedules without a plan that fits, the others, any order."""

    unfit_until: float = tuned(0.2, "of the time limit, until which those without a plan that fits are searched", 0, 1)
    until: float = tuned(0.6, "of the time limit, until which published ones are searched; then any order", 0, 1)


COMPARED = ComparedPlansParams()


_NO_TIME = "not tried: no time was left; a longer --time-limit, or this one by --schedules"
FREE = "free"  # the row of any order, as in a plan file


def orders_of(problem: PlanProblem, name: str) -> Sequence[str]:
    """Return the orders that the row of schedule `name` may use.

    That is the schedule itself, and for interleaved 1F1B one per size after it. The sizes are those of the groups of
    micro-batches that Megatron accepts.
    """
    m, p = problem.microbatches, problem.cluster.devices
    if name != ORDER:
        return [name]
    return list(dict.fromkeys([name, *(order_of(m, p, size) for size in group_sizes(m, p))]))


def compared_schedules(
    problem: PlanProblem,
    orders: Mapping[str, Sequence[str]],
    free: str | None,
    limits: Limits,
    report: Report,
    stop: Event,
    *,
    every: bool = False,
    elsewhere: bool = True,
) -> list[ComparedSchedule]:
    """Return one row for each name in `orders`, which may run any of its orders, and a row named `free` for any order.

    If no placement of the file can run a schedule, all other placements are tried if `elsewhere`. Rows are sorted by
    value, the least first; rows without a plan that fits the memory are last. With `every` each schedule gets a first
    plan even after the time limit. With `free` None there is no row for any order. Raises `BadInput` for an unknown
    name; other errors become the reason of their row.
    """
    time = TimeShares(limits)
    rows, asked = _first(problem, orders, time, report, stop, every, elsewhere)
    for fits, until in ((False, COMPARED.unfit_until), (True, COMPARED.until)):
        left = [row for row in rows.values() if row.fits is fits and _is_open(row)]
        for at, row in enumerate(left):
            if row.plan is not None and not (stop.is_set() or time.spent(until)):
                named_report, part = named(report, row.name, time.seconds), time.part(until, len(left) - at)
                found = with_bounds_of(plan_from(_bests(row), asked[row.name], part, named_report, stop), row.plan)
                rows[row.name] = replace(row, plan=found, unfit=None if found.best else row.unfit, reason=found.reason)
    published = [*rows.values()]
    if free is not None:
        used = dict.fromkeys(problem.choices)
        for row in published:
            used |= dict.fromkeys(asked[row.name].choices if row.fits else ())
        whole = replace(problem, choices=tuple(used), schedules=())
        starts = [each for row in published for each in _bests(row)]
        found = plan_from(starts, whole, time.part(1, 1), named(report, free, time.seconds), stop)
        published = [
            row if row.plan is None else replace(row, plan=with_bounds_of(row.plan, found)) for row in published
        ]
        published.append(ComparedSchedule(free, found, reason=found.reason))
    return sorted(published, key=_rank)


def _first(
    problem: PlanProblem,
    orders: Mapping[str, Sequence[str]],
    time: TimeShares,
    report: Report,
    stop: Event,
    every: bool,
    elsewhere: bool,
) -> tuple[dict[str, ComparedSchedule], dict[str, PlanProblem]]:
    """Return, by name of schedule, the row with a plan made at once, and the plan problem for which it was made.

    A row without a plan has the reason. Orders that do not depend on the costs come first, since the others are
    searched for and may take long. With `every` plans are made even after the time limit; with `elsewhere` also on
    placements that the file does not have, where none of its own can run the schedule.
    """
    rows, asked = dict[str, ComparedSchedule](), dict[str, PlanProblem]()
    # The same for all schedules, of which many are asked whether they apply.
    even = cache(partial(_even, problem))
    for name in sorted(orders, key=lambda each: not schedule_named(each).same_for_all_costs):
        own = orders[name]
        choices, reason = _choices(problem, own, elsewhere, even)
        if not choices or stop.is_set() or (time.spent() and not every):
            why = "not tried: interrupted" if stop.is_set() else _NO_TIME
            applies = bool(choices)
            rows[name] = ComparedSchedule(name, reason=why if applies else reason, applies=applies)
            continue
        mine = asked[name] = replace(problem, choices=choices, schedules=tuple(own))
        named_report = named(report, name, time.seconds)
        named_report(PlanProgress(0, None, Fraction(0), 0, len(choices), "first plans"))
        try:
            found = plan(mine, time.none(), named_report, stop)
            rows[name] = ComparedSchedule(name, found, None if found.best else least_lacking(mine), found.reason)
        except Exception as error:
            rows[name] = ComparedSchedule(name, reason=left_out_note(name, error))
    return rows, asked


def _bests(row: ComparedSchedule) -> list[PlanCandidate]:
    return [] if row.plan is None else [each.best for each in row.plan.choices if each.best is not None]


def _is_open(row: ComparedSchedule) -> bool:
    return row.plan is not None and row.plan.status not in (Status.OPTIMAL, Status.INFEASIBLE)


def _rank(row: ComparedSchedule) -> tuple[bool, bool, Fraction]:
    best = row.best
    return not row.fits, best is None, Fraction(0) if best is None else best.value


def _choices(
    problem: PlanProblem, orders: Sequence[str], elsewhere: bool, even: Callable[[Choice], Problem]
) -> tuple[tuple[Choice, ...], str]:
    """Return (placements, reason): those of the file that run one of `orders`, or the reason why no placement does.

    If `elsewhere`, other placements that run one are returned where none of the file does. `even` returns the problem
    of a placement to which the schedules are applied.
    """
    chunks = sorted({1, 2, *(choice.chunks for choice in problem.choices)})
    others = [
        *(Choice("interleaved", number) for number in chunks if number > 1),
        Choice("linear", 1), Choice("v-shape", 2), Choice("bidirectional", 2),
        *(Choice("wave", number) for number in chunks if number > 2),
    ]  # fmt: skip
    reasons = list[str]()
    for allowed in (problem.choices, [one for one in others if problem.allows(one)] if elsewhere else ()):
        found = [choice for choice in allowed if any(_applies(problem, choice, name, reasons, even) for name in orders)]
        if found:
            return tuple(found), ""
    # Reasons about the schedule's own placement have the lowest priority.
    return (), max(reasons, key=lambda text: (not text.startswith("needs one stage"), "placement" not in text))


def _even(problem: PlanProblem, choice: Choice) -> Problem:
    """Return the problem of a placement without a memory limit, on its given partition, or else an even one."""
    roomy = replace(problem, cluster=replace(problem.cluster, capacity=None))
    stages = len(choice.on(problem.cluster.devices).chains[0])
    return roomy.problem(choice, Partition(problem.counts or some_counts(problem.model, stages)))


def _applies(
    problem: PlanProblem, choice: Choice, name: str, reasons: list[str], even: Callable[[Choice], Problem]
) -> bool:
    stages = len(choice.on(problem.cluster.devices).chains[0])
    if stages > problem.model.most_stages or (problem.counts is not None and len(problem.counts) != stages):
        reasons.append(f"{stages} stages, which the model or its partition has not")
        return False
    try:
        with patience():
            schedule_named(name).order(even(choice))
    except DoesNotApply as reason:
        reasons.append(str(reason))
        return False
    except Exception as error:
        reasons.append(left_out_note(name, error))
        return False
    return True
