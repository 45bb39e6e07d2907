"""Search for short schedules of many micro-batches, from whose middle `solver/cyclic/` takes periodic patterns."""

from __future__ import annotations

from dataclasses import replace
from threading import Event

from pipesched.problem.objective import Objective
from pipesched.problem.problem import Problem
from pipesched.results.solution import Progress
from pipesched.schedule.schedule import Schedule
from pipesched.schedule.timeline import Timeline
from solver.engine.engine import SCHEDULES_ONLY
from solver.engine.run import run
from solver.engine.search import Search
from solver.engine.subsolvers.beam_schedules import BeamSchedules
from solver.engine.subsolvers.local_search import LocalSearch
from solver.engine.subsolvers.tuned_lists import TunedListSchedules
from solver.limits import Limits

# A long run is too large for the others, and what they prove of its makespan is of no use for the period.
_ENGINE = replace(SCHEDULES_ONLY, subsolvers=(TunedListSchedules(), BeamSchedules(), LocalSearch()))


def search_long_run(problem: Problem, limits: Limits, stop: Event) -> list[Schedule]:
    """Search for the least makespan; return every schedule that was the best so far, in the order found.

    So the last is the best, and the list is empty if none was found. The problem's own objective does not count.
    """
    found = list[Timeline]()

    def keep(_: Progress) -> None:
        timeline = search.incumbent.timeline
        if timeline is not None and (not found or timeline is not found[-1]):
            found.append(timeline)

    search = Search(replace(problem, objective=Objective.MAKESPAN), limits, keep, stop, _ENGINE)
    run(search)
    return [timeline.schedule for timeline in found]
