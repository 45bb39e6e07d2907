"""Compiles the kernels of the local search, by a small solve that calls them all: `python -m` of this module.

With the argument `modes` they are those of problems in which modes of passes are open; with `crossings` those of the
bound by crossings and of its check.
"""

from __future__ import annotations

import sys
from threading import Event

from pipesched.checking.check import check_bound
from pipesched.files.problem_file import problem_from
from solver.bounds.crossing.bound import crossing_bounds
from solver.engine.final_phase import finished
from solver.engine.phases.analytic_bounds import AnalyticBounds
from solver.engine.phases.local_search import LocalSearch
from solver.engine.phases.published import Published
from solver.engine.search import Engine, Search
from solver.limits import Limits

# The load is below the makespan, so that the search goes on to the end; counted work compiles where it is called.
_PROBLEM = {"devices": 3, "microbatches": 4, "times": {"forward": 2, "backward": 2, "weight": 1}}
_WITH_BLOCKS = {"devices": 3, "microbatches": 4, "times": {"forward": 2, "backward": 4, "overlapped": 5}}
_LIMITS = Limits(workers=1, deterministic=40)  # each of the annealings that differ in the types of their numbers
_ENGINE = Engine(AnalyticBounds(load_only=True), (Published(),), (LocalSearch(),), finished, raise_bounds=False)


def compile_kernels(modes: bool = False) -> None:
    """Call every kernel once; Numba keeps what it compiles on disk."""
    search = Search(problem_from(_WITH_BLOCKS if modes else _PROBLEM), _LIMITS, lambda _: None, Event(), _ENGINE)
    search.run()
    finished(search)


def compile_crossings() -> None:
    """Bound a small problem by crossings, and check that."""
    problem = problem_from(_PROBLEM | {"memory": {"capacity": 2}})
    for certificate in crossing_bounds(problem, Event()):
        check_bound(problem, certificate)


if __name__ == "__main__":
    if "crossings" in sys.argv[1:]:
        compile_crossings()
    else:
        compile_kernels("modes" in sys.argv[1:])
