"""Finds the schedule a user asks for: a published one by its name, or the order in a schedule file."""

from __future__ import annotations

from pathlib import Path

from commands.shared.not_applicable import applicable, or_none
from heuristics.catalogue import HEURISTICS, schedule_named
from pipesched.errors import BadInput, Deadlock, DoesNotApply
from pipesched.files.schedule_file import read_schedule
from pipesched.problem.problem import Problem
from pipesched.schedule.timeline import Timeline
from pipesched.simulation.simulator import simulate
from pipesched.validation.validator import validate, validate_schedule


def timeline_of(problem: Problem, text: str) -> Timeline:
    """A schedule on this problem, everything as soon as possible: a published schedule's name, or a schedule file."""
    if text not in HEURISTICS.names() and Path(text).is_file():
        schedule = read_schedule(text).timeline.schedule
        wrong = validate_schedule(problem, schedule)
        if wrong:
            raise BadInput(*(f"{text}: does not match {problem.name}: {violation.text}" for violation in wrong[:5]))
        try:
            return simulate(problem, schedule)
        except Deadlock as deadlock:
            raise BadInput(f"{text}: {deadlock}") from None
    try:
        return simulate(problem, schedule_named(text).order(problem))
    except DoesNotApply as reason:
        others = or_none(applicable(problem))
        raise BadInput(f"{text} does not apply to {problem.name}: {reason}; those that do: {others}") from None


def timeline_in(path: str) -> Timeline:
    """A schedule file's own timeline; `BadInput` where it breaks a rule other than the memory's."""
    timeline = read_schedule(path).timeline
    broken = [violation for violation in validate(timeline) if violation.rule != "memory"]
    if broken:
        raise BadInput(*(f"{path}: not a valid schedule: {violation.text}" for violation in broken[:5]))
    return timeline
