"""A schedule interrupted at an instant, and the remaining passes ordered again from that state."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

from benchmarks.matrix.commands_of import SECONDS
from pipesched.errors import BadInput
from pipesched.files.exact_numbers import as_number
from pipesched.files.schedules.task_texts import start_texts
from pipesched.files.state_file import state_from
from pipesched.problem.passes import RECOMPUTATIONS, F
from pipesched.problem.problem import Problem
from pipesched.problem.rendezvous import receives
from pipesched.results.solution import Solution, Status
from pipesched.schedule.metrics import measure
from pipesched.schedule.timeline import Timeline
from pipesched.validation.state_rules import validate_from_state
from solver.limits import Limits
from solver.replanning.replan import replan


def has_no_state(problem: Problem) -> bool:
    """True if the reader of states refuses such a problem."""
    return bool(problem.overlaps or problem.walks.scale or receives(problem) or problem.objective.repeats)


def state_document(timeline: Timeline, now: int) -> dict[str, Any]:
    """The state file of an instant: the tasks that have begun."""
    problem, texts = timeline.problem, start_texts(timeline)
    named = {problem.task_text(task): task for task in timeline.starts}
    again = {p[1:]: p.kind for p in timeline.schedule.passes() if p.kind in RECOMPUTATIONS}
    passes = []
    for name, start in texts.items():
        task = named[name]
        if start > now:
            continue
        ticks = problem.network.tasks[task.of[:2]][task.part].ticks
        row: dict[str, Any] = {"name": name, "start": as_number(start * problem.tick)}
        if start + ticks <= now:
            row["end"] = as_number((start + ticks) * problem.tick)
        kind = again.get(task.of[1:])
        if task.of.kind is F and task.part == 0 and kind is not None:
            row["recompute"] = problem.stages[task.of.stage].recompute[RECOMPUTATIONS.index(kind)].name
        passes.append(row)
    return {"now": as_number(now * problem.tick), "passes": passes}


def replanned(problem: Problem, solution: Solution, random: Random) -> Iterator[str]:
    """Faults of replanning the solution from an instant of it.

    Every order of the remaining passes is a schedule of the problem, and the solution itself is one of them.
    """
    timeline = solution.timeline
    if timeline is None:
        return
    problem = timeline.problem
    end = measure(timeline).makespan_ticks
    document = (
        state_document(timeline, 0) if has_no_state(problem) else state_document(timeline, random.randint(0, end))
    )
    try:
        finer, state = state_from(document, problem)
    except BadInput as error:
        if not has_no_state(problem):
            yield f"wrong: an honest state is refused: {error} ({document})"
        return
    if has_no_state(problem):
        yield "wrong: a state is read that should be refused"
        return
    found = replan(finer, state, Limits(seconds=SECONDS, workers=1))
    if found.status is Status.INFEASIBLE or solution.value_ticks is None:
        yield f"wrong: infeasible from a state of a valid schedule ({document})"
        return
    # Where a span is a fraction of a tick, the answer is in ticks finer than those of the state.
    value, tick = found.value, found.problem.tick
    bound = found.lower_bound * tick
    was = solution.value_ticks * solution.problem.tick
    if bound > was:
        yield f"wrong: from a state bound {float(bound)}, where the schedule takes {float(was)} ({document})"
    if value is not None:
        assert found.tasks is not None
        broken = validate_from_state(found.problem, found.state, found.tasks)
        yield from (f"wrong: from a state: {one}" for one in broken[:2])
        if solution.status is Status.OPTIMAL and value * tick < was:
            yield f"wrong: from a state value {float(value * tick)} below the optimum {float(was)} ({document})"
        if found.status is Status.OPTIMAL and value * tick > was:
            yield f"wrong: from a state optimal {float(value * tick)}, where {float(was)} is there ({document})"
