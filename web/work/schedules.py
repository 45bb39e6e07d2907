"""All published schedules on the problem of the page, simulated and sent row by row, after the form's edits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from heuristics.catalogue import HEURISTICS, Heuristic
from pipesched.errors import BadInput, did_you_mean
from pipesched.files.exact_numbers import read_yaml
from pipesched.files.plan_file import plan_problem_from
from pipesched.problem.pass_names import microbatch_count
from pipesched.problem.problem import Problem
from pipesched.results.candidate import Candidate
from pipesched.results.comparison import comparison_document
from pipesched.results.schedule_figures import memory_capacity
from pipesched.results.solution import Solution
from plots.html.document import document
from solver.engine.engine import WITHOUT_SEARCH
from solver.limits import Limits
from solver.published import candidate
from solver.solve import solve, without_search
from web import form, text_edits
from web.problem_texts import SOURCE, document_of, is_plan, problem_of
from web.settings import Settings
from web.work import planning
from web.work.channel import Channel

# Boxes of a chart that is small enough to be sent with every schedule.
_SKETCHED = 3_000
# Of the time that all may take, for the bounds.
_BOUND_SHARE = 0.25
_BOUNDS_ALONE = replace(WITHOUT_SEARCH, construction=())


def compare(channel: Channel, text: str, edits: Sequence[tuple[str, str | None]], settings: Settings) -> None:
    """Apply the form's edits to the text, then send the page each part once it is known, as messages of these kinds.

    An edit is (field, new text; None removes it). "text" is the edited text, only after edits, "form" the values of the
    form, then "problem", its lower "bound", and a "row" for each published schedule. For a plan file its description,
    "plan", takes the place of the last three. `BadInput` for a wrong field or file, or a problem that is too large.
    """
    if edits:
        text = edited(text, edits)
        channel.send("text", text)
    found = document_of(text, settings)
    channel.send("form", form.values(found, is_plan(found)))
    if is_plan(found):
        plan = plan_problem_from(found, SOURCE, "plan")
        planning.refuse_large(plan, settings)
        planning.describe(channel, plan)
        return
    problem = problem_of(found, settings)
    channel.send("problem", _problem_document(problem))
    seconds = settings.quick_seconds
    if problem.objective.repeats:
        solution = without_search(problem, Limits(seconds=seconds, workers=1))
        _send_bound(channel, solution)
        for one in solution.candidates:
            _send_row(channel, solution.problem, one, solution.lower_bound_ticks)
        return
    bounded = solve(problem, Limits(seconds=_BOUND_SHARE * seconds, workers=1), engine=_BOUNDS_ALONE)
    _send_bound(channel, bounded)
    for heuristic in sorted(HEURISTICS, key=_slow_last):
        # In the solution's ticks, which are finer where its bound needs that.
        _send_row(channel, bounded.problem, candidate(bounded.problem, heuristic), bounded.lower_bound_ticks)


def edited(text: str, edits: Sequence[tuple[str, str | None]]) -> str:
    """Return the text with the edits (path, value) of form fields made in turn; an empty value or None removes its key.

    `BadInput` for a path that no field has, a text that is no YAML, or a key that cannot be changed automatically.
    """
    for path, typed in edits:
        if path not in form.paths():
            raise BadInput(f"found no field {path!r}{did_you_mean(path, form.paths())}")
        value = form.yaml_value(path, typed) if typed and typed.strip() else None
        where = path
        if form.is_transfer(path):
            found = read_yaml(text, SOURCE)
            where, value = form.edit(found, path, value, is_plan(found))
        text = text_edits.with_value(text, where, value)
    read_yaml(text, SOURCE)
    return text


def chart(channel: Channel, text: str, name: str, settings: Settings) -> None:
    """Send the chart of the published schedule `name` on the problem file in `text`, as a message of kind "chart".

    `BadInput` if it does not apply, or for a wrong file.
    """
    problem = problem_of(document_of(text, settings), settings)
    found = candidate(problem, HEURISTICS[name])
    if found.timeline is None:
        raise BadInput(f"{name}: {found.reason}")
    channel.send("chart", document(found.timeline))


def _slow_last(heuristic: Heuristic) -> tuple[bool, str]:
    """Return a sort key by which schedules that need a search are last, since they take seconds for large problems."""
    return heuristic.searched, heuristic.name


def _problem_document(problem: Problem) -> dict[str, object]:
    return {
        "name": problem.name,
        "objective": problem.objective.name,
        "timeUnit": problem.time_unit,
        "memoryUnit": problem.memory_unit,
        "devices": problem.devices,
        "microbatches": microbatch_count(problem),
        "capacity": memory_capacity(problem),
        "notes": list(problem.notes),
    }


def _send_bound(channel: Channel, solution: Solution) -> None:
    """Send the lower bound; for an infeasible problem the reason."""
    kind = solution.certificate.document() if solution.certificate else None
    channel.send("bound", {"value": solution.lower_bound, "certificate": kind, "infeasible": solution.reason or None})


def _send_row(channel: Channel, problem: Problem, one: Candidate, bound: int) -> None:
    row = _row(problem, one, bound)
    passes = sum(map(len, one.timeline.schedule.orders)) if one.timeline else 0
    if one.timeline is not None and passes <= _SKETCHED:
        row["chart"] = document(one.timeline)
    channel.send("row", row)


def _row(problem: Problem, one: Candidate, bound: int) -> dict[str, Any]:
    rows = comparison_document(problem, [one], bound)["rows"]
    assert isinstance(rows, list)
    row: Mapping[str, Any] = rows[0]
    period = one.metrics.period_ticks if one.metrics else None
    return {
        **row,
        "period": None if period is None else problem.in_units(period),
        "reference": HEURISTICS[one.name].reference,
    }
