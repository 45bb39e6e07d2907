"""The picture that belongs to a result of any kind."""

from __future__ import annotations

from functools import partial, singledispatch

from pipesched.errors import BadInput
from pipesched.picture import Picture
from pipesched.results.analysis.frontier import Frontier
from pipesched.results.comparison import Comparison
from pipesched.results.plan import Plan
from pipesched.results.solution import Solution
from pipesched.schedule.timeline import Timeline
from pipesched.sweeps.table import Table
from plots.frontier import render_frontier
from plots.gantt import draw_gantt
from plots.plan import render_plan
from plots.render import Format, render
from plots.sweeps.pictures import pictures


@singledispatch
def picture_of(thing: object) -> Picture:
    """Return the picture of a result.

    A timeline or solution is a Gantt chart, a plan its stages, a sweep or frontier its values. `BadInput` for anything
    else, and for a result without a schedule. The functions registered below draw one type of result each.
    """
    raise BadInput(f"plot: found {type(thing).__name__}; allowed: a timeline, or what solve, plan, … return")


@picture_of.register
def _(timeline: Timeline) -> Picture:
    title = f"{timeline.problem.name}: {timeline.schedule.name}"

    def image(format: Format) -> bytes:
        return render(timeline, draw_gantt, format, title, zoomed=True)

    return Picture(title, image)


@picture_of.register
def _(solution: Solution) -> Picture:
    if solution.timeline is None:
        raise BadInput("plot: found a solution without a schedule; allowed: one with a schedule")
    return picture_of(solution.timeline)


@picture_of.register
def _(comparison: Comparison) -> Picture:
    return picture_of(comparison.solution)


@picture_of.register
def _(plan: Plan) -> Picture:
    if plan.best is None:
        raise BadInput("plot: found no plan; allowed: a result with a plan")
    return Picture(plan.summary(), partial(render_plan, plan.problem, plan.best))


@picture_of.register
def _(frontier: Frontier) -> Picture:
    if not frontier.points:
        raise BadInput("plot: found a frontier without points; allowed: one with points")
    return Picture(frontier.summary(), partial(render_frontier, frontier))


@picture_of.register
def _(table: Table) -> Picture:
    if all(row.value is None for row in table.rows):
        raise BadInput("plot: found a sweep without any schedule; allowed: one with a schedule")
    return Picture(table.summary(), lambda format: next(iter(pictures(table, format).values())))
