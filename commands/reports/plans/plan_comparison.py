"""Report of `compare` for a plan file: the plan of each published schedule, as a table and as JSON."""

from __future__ import annotations

import math

from commands.options.plan_compare import PlanRows
from commands.reports.plans.plan import what_is_in_it
from commands.shared.output import idle_shown, next_step, percent, with_program
from commands.shared.tables import Column, table
from pipesched.layers.plan_problem import PlanProblem
from pipesched.problem.formatting import plain
from pipesched.results.plan import PlanCandidate
from pipesched.results.plan_figures import searched
from pipesched.results.solution import Status
from pipesched.schedule.metrics import BUBBLE, IDLE, measure
from runtime.partitions.catalogue import PARTITION_FORMATS
from solver.planning.compared_schedule import ComparedSchedule
from solver.planning.lacking import lacking

_BOUND = "none of its plans is below"


def _columns(problem: PlanProblem) -> list[Column]:
    unit = f"\n({problem.time_unit})" if problem.time_unit else ""
    rooms = sorted({plain(float(room)) for room in problem.cluster.capacity or ()})
    cap = f" of {rooms[0]}" if len(rooms) == 1 else ""
    return [
        Column("schedule"),
        Column(f"{problem.objective.name}{unit}", True),
        Column("above\nthe best", True),
        Column(f"{_BOUND}{unit}", True, 5),
        Column(IDLE, True, 3),
        Column(BUBBLE, True, 6),
        Column(f"peak memory\n({problem.cluster.memory_unit}{cap})", True, 2),
        Column("fits"),
        Column("recomputed layers", True, 4),
        Column("placement", leave_out=4),
        Column("layers of each stage", leave_out=7),
        Column("runtimes", leave_out=1),
    ]


def show(found: PlanRows, free: str, path: str) -> None:
    """Print the verdict, the table with the best row in bold, and the schedules that do not apply.

    `free` is the name of the row for orders that are not published. The last lines are the command that writes the best
    plan for a runtime; `path` is the plan file.
    """
    problem, rows = found.problem, found.rows
    shown = [row for row in rows if row.best is not None]
    print(_verdict(problem, [row for row in shown if row.fits], free))
    title = f"{problem.name}: the best plan found with each schedule"
    bold = [0] if shown and shown[0].fits else []
    if shown:
        table(title, _columns(problem), [_cells(found, row) for row in shown], bold)
    for line in shared_bounds(shown):
        print(line)
    if shown:
        print(f"{problem.objective.name}: {what_is_in_it(problem)}")
    best = next((row for row in rows if row.name == free), None)
    if best is not None and best.plan is not None and best.plan.value is not None:
        bound = f"{plain(float(best.plan.lower_bound))} {problem.time_unit}".rstrip()
        print(f"{free}: any order; no plan is below {bound} ({searched(best.plan.problem)})")
    if any(not row.fits for row in shown):
        print("what does not fit is shown with the memory that the least of its plans tried needs")
    for row in rows:
        if row.best is None:
            unknown = row.plan is not None and row.plan.status is Status.UNKNOWN
            reasons = ["no plan found in the time given"] if unknown else []
            print(f"- {row.name}: {': '.join([*reasons, *([row.reason] if row.reason else [])])}")
    if shown and shown[0].fits:
        for line in _elsewhere(problem, shown):
            print(line)
        _next(found, path)


def shared_bounds(shown: list[ComparedSchedule]) -> list[str]:
    """Return a sentence for each schedule whose time is the bound of others, which explains why.

    Empty if there is none. The plans of those others were searched only until it was proved that none is better than
    that time.
    """
    values = {row.best.value: row.name for row in reversed(shown) if row.fits and row.best is not None}
    found = dict[str, list[str]]()
    for row in shown:
        if row.fits and row.plan is not None and row.plan.status is not Status.OPTIMAL:
            other = values.get(row.plan.lower_bound)
            if other not in (None, row.name):
                found.setdefault(str(other), []).append(row.name)
    return [
        f"{', '.join(names)}: searched until it was proved that no plan of {'theirs' if names[1:] else 'it'} is better "
        f"than that of {other}, which is why the bound is its time"
        for other, names in found.items()
    ]


def _elsewhere(problem: PlanProblem, shown: list[ComparedSchedule]) -> list[str]:
    """Return a line on placements of the rows that the file does not allow, so that `plan` has no such plan of it."""
    choices = dict.fromkeys(row.best.choice for row in shown if row.fits and row.best is not None)
    others = "; ".join(str(choice) for choice in choices if choice not in problem.choices)
    allowed = "; ".join(map(str, problem.choices))
    line = (
        f"not of the file's placements ({allowed}): {others}; `pipesched plan` searches them where the file allows them"
    )
    return [with_program(line)] if others else []


def _next(found: PlanRows, path: str) -> None:
    """Print the command to run next, on the plan file `path`.

    That command writes the best plan that a runtime of these schedules runs, or else the best plan of any order.
    """
    for row in found.rows:
        for name in found.runtimes.get(row.name, ()):
            if name in PARTITION_FORMATS.names():
                does = f"writes the best plan that {name} runs: its settings, and a report"
                next_step(["plan", path, "--for", name, "-o", "out"], does)
                return
    next_step(["plan", path, "-o", "out"], "writes the best plan of any order, and a report")


def _verdict(problem: PlanProblem, fitting: list[ComparedSchedule], free: str) -> str:
    """Return a sentence on the best plan found, and on the best plan of a published schedule.

    `fitting` are the rows that fit the memory, the best first; `free` is the name of the row without a published
    schedule.
    """
    timed = [(row.name, row.best.value, row.best.schedule) for row in fitting if row.best is not None]
    if not timed:
        return "no plan found fits the memory"
    (name, value, order), published = timed[0], [one for one in timed if one[0] != free]
    called = f"{name} ({order})" if name == free else name
    sentence = f"best found: {called}: {problem.objective.name} {plain(float(value))} {problem.time_unit}".rstrip()
    if not published or published[0][0] == name:
        return sentence
    other, takes, _ = published[0]
    more = f"{percent(float(takes / value - 1))} more" if takes > value else "as much"
    return f"{sentence}; the best published schedule that fits, {other}, takes {more}"


def _cells(found: PlanRows, row: ComparedSchedule) -> list[str]:
    problem, best = found.problem, row.best
    assert best is not None
    one, metrics = best.timeline.problem, measure(best.timeline)
    counts = best.partition.recompute_counts()
    own = "" if best.schedule in (row.name, "") else f" ({best.schedule})"
    least = found.rows[0].best.value if found.rows[0].best is not None else best.value
    optimal = row.fits and row.plan is not None and row.plan.status is Status.OPTIMAL
    bound = "optimal" if optimal else plain(float(row.plan.lower_bound)) if row.fits and row.plan is not None else ""
    return [
        row.name + own,
        plain(float(best.value)),
        percent(float(best.value / least - 1)) if row.fits and least else "",
        bound,
        *(percent(share) for _, share in idle_shown(one, metrics)),
        plain(round(max(metrics.peak_memory), 3)),
        _fits(problem, row, best),
        str(sum(sum(stage.values()) for stage in counts)),
        str(best.choice),
        " ".join(map(str, best.partition.counts)),
        ", ".join(found.runtimes.get(row.name, ())),
    ]


def _fits(problem: PlanProblem, row: ComparedSchedule, best: PlanCandidate) -> str:
    if row.fits:
        return "yes"
    more, device = lacking(problem, best)
    none = row.plan is not None and row.plan.status is Status.INFEASIBLE
    verdict = "no" if none else "no plan found that does"
    return (
        f"{verdict}: {plain(math.ceil(more * 1000) / 1000)} {problem.cluster.memory_unit} too much on device {device}"
    )


def document(found: PlanRows) -> dict[str, object]:
    """Return the object of `compare --json` for a plan file.

    Its `rows` have for each published schedule, and for free orders, the best plan with it (`ComparedSchedule.record`)
    and the `runtimes` that can run it, by name. `name`, `objective` and the units are of the whole file.
    """
    return {
        "name": found.problem.name,
        "objective": found.problem.objective.name,
        "time_unit": found.problem.time_unit,
        "memory_unit": found.problem.cluster.memory_unit,
        "rows": [row.record() | {"runtimes": found.runtimes.get(row.name, [])} for row in found.rows],
    }
