"""The incumbent as jobs with times, for the phases that search over tasks."""

from __future__ import annotations

from formulations.tasks.jobs_of_problem import jobs_of
from formulations.tasks.placed_jobs import PlacedJobs
from solver.engine.search import Search
from solver.tasks.placing import placed_in


def placed_incumbent(search: Search) -> PlacedJobs | None:
    """None where there is no incumbent, or where its memory is not safe on other timings."""
    best = search.incumbent.timeline
    return None if best is None else placed_in(jobs_of(search.problem), best)
