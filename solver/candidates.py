"""The published schedules on the user's problem: simulated, judged, and set against the memory."""

from __future__ import annotations

from heuristics.catalogue import Heuristic
from pipesched.errors import Disagreement, DoesNotApply
from pipesched.metrics import measure
from pipesched.problem import Problem
from pipesched.schedule import Schedule
from pipesched.simulator import simulate
from pipesched.solution import Candidate
from pipesched.validator import validate


def candidate(problem: Problem, heuristic: Heuristic) -> Candidate:
    """One published schedule; one that breaks any rule but the memory's is a defect in this tool."""
    try:
        schedule = heuristic.order(problem)
    except DoesNotApply as reason:
        return Candidate(heuristic.name, None, None, False, str(reason))
    return judged(problem, schedule, heuristic.name)


def judged(problem: Problem, schedule: Schedule, name: str) -> Candidate:
    """A schedule simulated and judged; `Disagreement` if it breaks any rule but the memory's."""
    timeline = simulate(problem, schedule)
    violations = validate(timeline)
    wrong = [violation for violation in violations if violation.rule != "memory"]
    if wrong:
        raise Disagreement(f"{name} gave a schedule that is not valid: {wrong[0].text}")
    too_much = violations[0].text if violations else ""
    return Candidate(name, timeline, measure(timeline), not violations, too_much)
