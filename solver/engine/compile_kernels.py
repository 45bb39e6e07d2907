"""Compile kernels by small searches that call them all; run as `python -m` with the kernels' names as arguments."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from threading import Event

from formulations.jobs.jobs_of_problem import jobs_of
from pipesched.checking.check import check_bound
from pipesched.files.problem_file import problem_from
from pipesched.problem.problem import Problem
from pipesched.results.certificate import Certificate
from solver.beam.completion import completion_bounds
from solver.beam.ranks import Preference
from solver.beam.schedules import schedule_of_moves
from solver.beam.search import best_order, ended
from solver.beam.tables import tables_of
from solver.construction.list_scheduling import list_schedules
from solver.construction.no_wait.block import block_of
from solver.construction.no_wait.search import best_starts
from solver.diagram.activation_mode_bounds import bounds_of_activation_modes
from solver.diagram.all_orders import bounds_of_all_orders
from solver.diagram.threshold_bounds import bounds_of_devices
from solver.diagram.threshold_search import ThresholdSearch
from solver.engine.analytic_bounds import AnalyticBounds
from solver.engine.construction.published import PublishedSchedules
from solver.engine.finish import finished
from solver.engine.kernels import ALL_KERNELS
from solver.engine.run import run
from solver.engine.search import Engine, Search
from solver.engine.subsolvers.local_search import LocalSearch
from solver.engine.subsolvers.tasks.policies import TaskPolicies
from solver.engine.subsolvers.tasks.ranks import TaskRanks
from solver.limits import Limits
from solver.tasks.job_graph import graph_of, with_modes
from solver.tasks.tabu.search import TabuSearch

# The load is below the makespan, so that the search does not end early; with counted work kernels are compiled when
# they are called.
_PROBLEM = {"devices": 3, "microbatches": 4, "times": {"forward": 2, "backward": 2, "weight": 1}}
_WITH_BLOCKS = {"devices": 3, "microbatches": 4, "times": {"forward": 2, "backward": 4, "overlapped": 5}}
_SENT = {"name": "send", "on": "comm", "time": 2}
_WITH_TASKS = _PROBLEM | {
    "streams": ["compute", "comm"],
    "tasks": {kind: [{"name": "attn", "time": 3}, _SENT] for kind in ("forward", "backward")},
    "times": {"transfer": 1},
}
_LIMITS = Limits(workers=1, deterministic=40)  # each of the annealings that differ in the types of their numbers
_ENGINE = Engine(
    AnalyticBounds(load_only=True),
    (PublishedSchedules(),),
    (
        LocalSearch(),
        TaskPolicies(rounds=1, tries=1),
        TaskRanks(tries=3),
    ),
    finished,
    raise_bounds=False,
)


def compile_kernels(which: str = "") -> None:
    """Run a small search that calls every kernel of local search once; Numba caches the machine code on disk.

    `which` is "modes" (overlapped blocks), "tasks" (passes of several tasks), or empty for plain passes.
    """
    problem = {"modes": _WITH_BLOCKS, "tasks": _WITH_TASKS}.get(which, _PROBLEM)
    search = Search(problem_from(problem), _LIMITS, lambda _: None, Event(), _ENGINE)
    run(search)
    finished(search)


def compile_lists() -> None:
    """Compile the kernels of list scheduling by making one list schedule."""
    next(list_schedules(problem_from(_PROBLEM), compiled=True))


def compile_bounds(
    bounds: Callable[[Problem, Event], Iterable[Certificate]], given: Mapping[str, object] = _PROBLEM
) -> None:
    """Compute and check the bounds `bounds(problem, stop)` of a small problem, which compiles the kernels of both.

    `given` has the keys of the problem's file, in which `memory` is replaced by a capacity of 2 activations.
    """
    problem = problem_from({**given, "memory": {"capacity": 2}})
    for certificate in bounds(problem, Event()):
        check_bound(problem, certificate)


def compile_diagrams() -> None:
    """Compile the kernels of decision diagrams whose labels hold times of 32 bits."""
    compile_bounds(bounds_of_all_orders)
    compile_bounds(lambda problem, stop: bounds_of_devices(ThresholdSearch(problem, stop, lambda: (1, 100))))


def compile_long_diagrams() -> None:
    """Compile the kernels of decision diagrams whose labels hold times of 32 bits, and those for 64 bits."""
    compile_diagrams()
    compile_bounds(bounds_of_all_orders, _PROBLEM | {"times": {"forward": 2**25, "backward": 2**25, "weight": 1}})


def compile_labels() -> None:
    """Compile the kernels that prune labels of diagrams over activation modes, on a problem with recomputation."""
    memory = {
        "activation": 1,
        "capacity": 2,
        "recompute": [{"name": "full", "time": 1, "keeps": 0}],
        "decide": {"recompute": "free"},
    }
    problem = problem_from(_PROBLEM | {"memory": memory})
    for certificate in bounds_of_activation_modes(problem, Event(), lambda: (1, 100), 10_000):
        check_bound(problem, certificate)


def compile_beam() -> None:
    """Compile the kernels of beam search, on a small problem with overlapped blocks."""
    problem = problem_from(_WITH_BLOCKS)
    bounds, prefers = completion_bounds(problem, Event()), Preference(0.0, 1.0, 1.0, 1.0)
    tables = tables_of(problem)
    found = ended(best_order(tables, prefers, 1, 1, bounds))
    assert found is not None
    schedule_of_moves(problem, tables, found.moves)


def compile_no_wait() -> None:
    """Compile the kernel of no-wait schedules by one search."""
    view = problem_from(_PROBLEM | {"memory": {"capacity": 2}}).view
    assert view is not None
    best_starts(block_of(view, True), 2, 1, Event())


def compile_tabu() -> None:
    """Compile the kernel of tabu search by one step."""
    jobs = jobs_of(problem_from(_PROBLEM))
    TabuSearch(jobs, graph_of(jobs, with_modes(jobs, fused=False)).heads(), 0).step()


# By the names of `Kernels`.
CALLS: dict[str, Callable[[], None]] = {
    "search": compile_kernels,
    "lists": compile_lists,
    "modes": partial(compile_kernels, "modes"),
    "tasks": partial(compile_kernels, "tasks"),
    "diagrams": compile_diagrams,
    "long-diagrams": compile_long_diagrams,
    "labels": compile_labels,
    "no-wait": compile_no_wait,
    "tabu": compile_tabu,
    "beam": compile_beam,
}

if __name__ == "__main__":
    gc.disable()  # looking for cycles among what Numba makes takes a tenth of the time, and the process soon ends
    for wanted in (one for name in sys.argv[1:] for one in ALL_KERNELS if one.name == name):
        CALLS[wanted.name]()
        wanted.mark.touch()
