"""Schedules for a runtime (`solve --for`): the search within what it can express, and the answer in its terms."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from pipesched.errors import BadInput, Deadlock
from pipesched.problem.problem import Problem
from pipesched.results.solution import Solution, Status
from pipesched.schedule.metrics import measure
from pipesched.schedule.once_an_iteration import completed
from pipesched.schedule.schedule import Schedule
from pipesched.schedule.timeline import Timeline
from pipesched.validation.validator import validate
from runtime.exporters.catalogue import EXPORTERS
from runtime.exporters.restrictions import RESTRICTIONS, Restriction
from solver.construction.list_scheduling import sequential
from solver.construction.timing import best_times


def restricted(problem: Problem, target: str) -> Problem:
    """Return the problem restricted to what a runtime supports; `BadInput` with its exporter's reason if it runs none.

    Not every schedule of it can be exported: some runtimes also need micro-batches in one order on all stages. `target`
    is the name of the runtime, as `solve --for` takes it.
    """
    if target not in RESTRICTIONS:
        raise BadInput(f"--for: found {target!r}; allowed: {', '.join(sorted(RESTRICTIONS))}")
    refuse_tasks(problem, target)
    one = RESTRICTIONS[target]
    left = one.restricted(problem)
    # Whatever the exporter refuses in one micro-batch after the other it refuses in every order.
    _export(one, best_times(left, one.adapted(left, _in_turn(left))))
    return left


def refuse_tasks(problem: Problem, target: str) -> None:
    """Raise `BadInput` for a problem whose passes a runtime's files cannot hold, whatever their order.

    Passes of several tasks are always refused; other streams, offload, recomputation, collectives, pieces and modules
    unless the runtime's exporter has `copies`. `target` is the name of the runtime, as `solve --for` takes it.
    """
    exporter, network = EXPORTERS[RESTRICTIONS[target].exporter], problem.network
    copies = exporter.copies and all(len(tasks) == 1 for tasks in network.tasks.values())
    if not (network.one_task_each or copies):
        raise BadInput(f"--for {target}: found {network.multi_task_feature}; allowed: passes that are single tasks")


def expressed(solution: Solution, target: str, whole: Problem) -> Solution:
    """Return the solution with the best known schedule that the exporter of the runtime `target` accepts.

    `solution` is that of the restricted problem; it is returned as it is if it has no schedule. `whole` is the problem
    before the restriction, as the user gave it. Known are the schedule found, published ones and a sequential one, each
    rewritten first so that it keeps the restriction. `BadInput` if the exporter accepts none of them. If a better
    schedule was found that it does not accept, a note says so.
    """
    restriction, problem = RESTRICTIONS[target], solution.problem
    if solution.timeline is None:
        return solution
    found = [
        timeline
        for timeline in _known(solution, restriction)
        if not validate(timeline) and _takes(restriction, timeline)
    ]
    best = min(found, key=lambda timeline: measure(timeline).value_ticks(problem.objective), default=None)
    if best is None:
        raise BadInput(f"--for {target}: none of the schedules found can be expressed; allowed: a longer --time-limit")
    metrics = measure(best)
    value = metrics.value_ticks(problem.objective)
    notes = [_note(target, restriction.words(whole))]
    if solution.value_ticks is not None and value > solution.value_ticks:
        notes.append(f"the best schedule found cannot be expressed by {target}; this is the best known that can")
    status = Status.OPTIMAL if value == solution.lower_bound_ticks else Status.FEASIBLE
    return replace(solution, timeline=best, metrics=metrics, status=status, notes=(*solution.notes, *notes))


def written_for(timeline: Timeline, target: str) -> Timeline | None:
    """Return a timeline of a restricted problem, rewritten for the runtime `target`.

    None if the rewritten order deadlocks or breaks a rule, such as the memory, or the exporter does not accept it.
    """
    one = RESTRICTIONS[target]
    found = _timed(timeline.problem, one.adapted(timeline.problem, timeline.schedule))
    return found if found is not None and not validate(found) and _takes(one, found) else None


def runs(timeline: Timeline, target: str) -> bool:
    """Return True if a timeline, rewritten for the runtime `target`, fits the memory and its exporter accepts it.

    The check takes a tenth of the time of writing the file.
    """
    one = RESTRICTIONS[target]
    found = _timed(timeline.problem, one.adapted(timeline.problem, timeline.schedule))
    if found is None or any(violation.rule == "memory" for violation in validate(found)):
        return False
    try:
        EXPORTERS[one.exporter].check(found)
    except BadInput:
        return False
    return True


def _known(solution: Solution, one: Restriction) -> Iterator[Timeline]:
    """Yield known schedules, rewritten for the runtime, as timelines; those that cannot run are left out.

    They are the one found, the published ones that fit the memory, and one micro-batch after the other.
    """
    problem = solution.problem
    published = [c.timeline.schedule for c in solution.candidates if c.fits and c.timeline is not None]
    assert solution.timeline is not None
    for schedule in (solution.timeline.schedule, *published, _in_turn(problem)):
        timeline = _timed(problem, one.adapted(problem, schedule))
        if timeline is not None:
            yield timeline


def _in_turn(problem: Problem) -> Schedule:
    """Return the order of one micro-batch after the other, with what runs once an iteration."""
    return completed(problem, sequential(problem))


def _timed(problem: Problem, schedule: Schedule) -> Timeline | None:
    try:
        return best_times(problem, schedule)
    except (Deadlock, BadInput):
        return None


def _takes(one: Restriction, timeline: Timeline) -> bool:
    try:
        _export(one, timeline)
    except BadInput:
        return False
    return True


def _export(one: Restriction, timeline: Timeline) -> None:
    EXPORTERS[one.exporter].export(timeline, one.options(timeline.problem))


def _note(target: str, words: tuple[str, ...]) -> str:
    if not words:
        return f"{target} can express all schedules on this placement"
    what = "; ".join(words)
    return f"restricted to what {target} can express: {what}; value and bound are those of the problem so restricted"
