"""`compare` for plan files: the best plan for each published schedule, and the best plan of all."""

from __future__ import annotations

from argparse import Namespace
from dataclasses import replace
from typing import NamedTuple

from commands.options.compared import published
from commands.options.plan_progress import PlanLines
from commands.options.search import interrupt_sets, limits_of, progress_line
from commands.shared.output import note_plan
from commands.shared.watch import stop_event
from heuristics.catalogue import HEURISTICS
from pipesched.errors import BadInput
from pipesched.files.plan_file import plan_in
from pipesched.layers.plan_problem import PlanProblem
from pipesched.problem.objective import OBJECTIVES
from solver.planning.compared_schedule import ComparedSchedule
from solver.planning.schedule_comparison import FREE, compared_schedules, orders_of
from targets.plan_runtimes import runtimes_of

# The rest of the time limit is for what runtimes make of the plans found.
_SEARCH_SHARE = 0.9


class PlanRows(NamedTuple):
    """The comparison of published schedules on a plan file: its problem, and a row for each schedule, best value first.

    Rows without a plan that fits the memory are last. `runtimes` has, by name of each schedule with a plan that fits,
    the names of the runtimes that can run it. `interrupted` is True if the user stopped the search.
    """

    problem: PlanProblem
    rows: list[ComparedSchedule]
    runtimes: dict[str, list[str]]
    interrupted: bool


def plan_rows(document: object, path: str, args: Namespace) -> PlanRows:
    """Search the best plan for each published schedule of a plan file, and for free orders too unless `--no-optimal`.

    `document` is the content of the file at `path`. `BadInput` for mistakes in the file, and for options and objectives
    that a comparison of plans does not take.
    """
    options = {"--with": args.others, "--noise": args.noise is not None, "--measured": args.measured}
    given = [name for name, is_given in options.items() if is_given]
    if given:
        raise BadInput(f"{path}: found a plan file and {given[0]}; allowed: a problem file with {given[0]}")
    problem = plan_in(document, path)
    if args.objective is not None:
        wanted, has = OBJECTIVES[args.objective], problem.model.parameters.some
        if (wanted.passes is not None) is not has:
            state, allowed = ("with", "iteration") if has else ("without", "makespan or span")
            raise BadInput(f"{path}: objective: found {wanted.name} {state} parameters; allowed: {allowed}")
        if not has:  # else it is that of the file, which says whether the next iteration overlaps
            problem = replace(problem, objective=wanted)
    if problem.objective.repeats or problem.leaves is not None:
        found = problem.leaves or problem.objective
        raise BadInput(f"objective: found {found}; published schedules of a plan file are for makespan or span")
    note_plan(path, problem)
    names = published(args.schedules) or HEURISTICS.names()
    orders = {name: orders_of(problem, name) for name in names}
    stop, limits = stop_event(args), limits_of(args)
    with interrupt_sets(stop), progress_line() as say:
        rows = compared_schedules(
            problem, orders, None if args.no_optimal else FREE, replace(limits, seconds=_SEARCH_SHARE * limits.seconds),
            PlanLines(problem.time_unit, say), stop, every=bool(args.schedules),
        )  # fmt: skip
        say("looking for the runtimes that can run these plans")
        runtimes = {row.name: runtimes_of(problem, row.best) for row in rows if row.fits and row.best is not None}
    return PlanRows(problem, rows, runtimes, stop.is_set())
