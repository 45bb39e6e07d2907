"""The exact model of schedules no worse than the incumbent, and the transfer of CP-SAT's results to the incumbent."""

from __future__ import annotations

from formulations.exact.exact_model import ExactModel, improving
from formulations.variables.model_variables import MOST_LITERALS
from pipesched.problem.attainable_spans import Value
from pipesched.problem.chains.microbatch_chains import is_job_shop
from pipesched.problem.problem import Problem
from pipesched.schedule.timeline import Timeline
from solver.engine.search import Search


def improving_model(search: Search, literals: bool = True) -> ExactModel:
    """Return the exact model restricted to schedules no worse than the incumbent, with the incumbent as hint.

    There must be an incumbent. Raises `TooLong` if CP-SAT's integers cannot represent the times. Without `literals` the
    order of passes on a device is stated by intervals and no-overlap, not by Boolean literals.
    """
    problem, state = search.problem, search.incumbent.state
    assert state.timeline is not None
    assert state.value is not None
    most = most_literals(problem, literals)
    return improving(problem, state.timeline, state.value, state.lower_bound, most_literals=most)


def take(search: Search, timeline: Timeline | None, bound: Value, by: str | None = None) -> None:
    """Offer the schedule that CP-SAT found (None: none) and claim the bound that it proved, in ticks (0: none).

    `by` is the name of a subsolver that runs in the background; None for the current subsolver, whose bound is also
    recorded as found by it (`Search.found_bound`).
    """
    if timeline is not None:
        search.incumbent.offer(timeline, by)
    if bound:
        search.incumbent.claim(bound, by=by)
        if by is None:
            search.found_bound(bound)


def most_literals(problem: Problem, literals: bool = True) -> int:
    """Return the most order literals that an exact model may have.

    -1 stands for a model of intervals without order literals. The number is -1 where `literals` is False, and for job
    shops, in which no order follows from limited memory.
    """
    return -1 if is_job_shop(problem) or not literals else MOST_LITERALS
