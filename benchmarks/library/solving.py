"""Solves an instance that is open, and keeps what is better than its files."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path

from benchmarks.library.figures import published_timelines
from benchmarks.library.instance import OURS, Instance
from benchmarks.library.standing import Standing
from pipesched.files.atomic_write import write_whole
from pipesched.files.compressed import packed
from pipesched.files.exact_numbers import read_json
from pipesched.files.plan_answer import PlanAnswer, answer_text, plan_answer_from, plan_text
from pipesched.files.problem_file import read_document
from pipesched.files.schedule_file import ScheduleFile, read_schedule, save
from pipesched.layers.plan_problem import PlanProblem
from pipesched.problem.problem import Problem
from pipesched.schedule.metrics import measure
from pipesched.schedule.timeline import Timeline
from solver.limits import Limits
from solver.planning.plan import plan
from solver.solve import solve


def improve(found: Standing, limits: Limits) -> bool:
    """Search on from the best file; whether there is a better schedule or bound now, which is then written."""
    one = found.instance
    if isinstance(one.problem, PlanProblem):
        return _improve_plan(found, one.problem, limits)
    return _improve_schedule(found, one.problem, limits)


def _improve_schedule(found: Standing, problem: Problem, limits: Limits) -> bool:
    """Start from the best schedule; a bound alone goes to a schedule of ours, so that the best keeps its sender."""
    best, bound = found.best, found.bound
    known = None if best is None else read_schedule(best.path)
    solution = solve(problem, limits, start=_start(found.instance, problem, known))
    if solution.timeline is None:
        return False
    made = ScheduleFile.of(solution, solution.timeline)
    better = best is None or _units(problem, solution.value_ticks) < (best.value or 0)
    tighter = bound is None or _units(problem, solution.lower_bound_ticks) > (bound.bound or 0)
    if not better and not tighter:
        return False
    ours = next((one.path for one in found.entries if one.path.name.partition(".")[0] in OURS), None)
    if not better and known is not None:
        kept = known if ours is None else read_schedule(ours)
        made = replace(made, timeline=kept.timeline, value_ticks=kept.value_ticks)
    if not tighter and bound is not None:
        proved = read_schedule(bound.path)
        made = replace(made, lower_bound_ticks=proved.lower_bound_ticks, certificate=proved.certificate)
    written = save(made, found.instance.folder / "schedule.json.gz")
    if ours not in (None, written):
        ours.unlink()
    return True


def _start(one: Instance, problem: Problem, known: ScheduleFile | None) -> Timeline | None:
    """The best schedule that is there, in a file or as a published order; none of a period, which starts from none."""
    if problem.objective.repeats:
        return None
    able = [*published_timelines(one), *([] if known is None else [known.timeline])]
    return min(able, key=lambda timeline: measure(timeline).value_ticks(problem.objective), default=None)


def _improve_plan(found: Standing, problem: PlanProblem, limits: Limits) -> bool:
    """Bound and plan each from the file that has the better one, old or new."""
    best, bound = found.best, found.bound
    answer = plan(problem, limits)
    if answer.best is None or answer.value is None:
        return False
    better = best is None or answer.value < (best.value or 0)
    tighter = bound is None or answer.lower_bound > (bound.bound or 0)
    if not better and not tighter:
        return False
    made = plan_answer_from(read_json(plan_text(answer), "plan"), "plan")
    if not better and best is not None:
        kept = _answer(best.path)
        made = replace(made, choice=kept.choice, partition=kept.partition, schedule=kept.schedule)
    if not tighter and bound is not None:
        proved = _answer(bound.path)
        made = replace(made, lower_bound=proved.lower_bound, choices=proved.choices, variants=proved.variants)
        made = replace(made, capacities=proved.capacities)
    target = found.instance.folder / "plan.json.gz"
    write_whole(target, packed(target, answer_text(made)))
    return True


def _answer(path: Path) -> PlanAnswer:
    return plan_answer_from(read_document(path), str(path))


def _units(problem: Problem, ticks: int | Fraction | None) -> Fraction:
    return Fraction(ticks or 0) * problem.tick
