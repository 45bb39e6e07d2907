"""The engine of `solve` as data: its phases in their order, with their shares of the time."""

from __future__ import annotations

from math import inf

from solver.engine.final_phase import finished
from solver.engine.phases.analytic_bounds import AnalyticBounds
from solver.engine.phases.exact_model import ExactModel
from solver.engine.phases.linear_relaxation import LinearRelaxation
from solver.engine.phases.list_schedules import ListSchedules
from solver.engine.phases.local_search import LocalSearch, LocalSearchAgain
from solver.engine.phases.periodic import Periodic
from solver.engine.phases.published import Published
from solver.engine.phases.raise_bounds import RaiseBounds
from solver.engine.phases.sequential import Sequential
from solver.engine.phases.shorter_problem import ShorterProblem
from solver.engine.search import Engine, Search

ENGINE = Engine(
    bounds=AnalyticBounds(share=0.15),
    opening=(
        ShorterProblem(opening=(Published(compare_up_to_passes=0), Sequential())),
        Published(share=0.5),
        Sequential(),
    ),
    phases=(
        LinearRelaxation(share=0.15),
        Periodic(share=0.15, end_share=0.08, least_microbatches_a_device=4),
        ListSchedules(share=0.2, least_share=0.1),
        ExactModel(share=0.4, most_literals=2_500),
        LocalSearch(left_share=0.35),
        RaiseBounds(),
        ExactModel(),
        LocalSearchAgain(),
    ),
    finish=finished,
)

# Bounds and published schedules alone.
WITHOUT_SEARCH = Engine(
    bounds=AnalyticBounds(),
    opening=(Published(share=1.0, compare_up_to_passes=inf),),
    phases=(),
    finish=Search.solution,
)
