"""Exchange of unequal micro-batches: which may change places, that all orders do so together, and what it finds."""

from __future__ import annotations

from pipesched.files.problem_file import problem_from
from pipesched.problem.chains.microbatch_chains import microbatch_chains
from pipesched.problem.problem import Problem
from pipesched.schedule.metrics import measure
from pipesched.validation.validator import validate
from solver.construction.list_scheduling import sequential
from solver.construction.timing import best_times
from solver.local_search.annealing import Annealer
from solver.local_search.annealing_run import AnnealingRun
from solver.local_search.units.order_units import Units

HOT = AnnealingRun(hot=1.0, cold=0.05, evenness=0.1, filling=0.1)
GENTLE = AnnealingRun(hot=0.01, cold=0.002, evenness=0.1, filling=0)


def chains(scale: list[float], order: str = "free", capacity: float | None = None) -> Problem:
    """Two devices, a wave; a chain of stages for each factor."""
    document = {
        "devices": 2, "microbatches": len(scale), "placement": "wave", "chunks": 2, "microbatch_scale": scale,
        "microbatch_order": order, "times": {"forward": [8, 8, 2, 2], "backward": [16, 16, 4, 4]},
    }  # fmt: skip
    memory = {} if capacity is None else {"memory": {"capacity": capacity}}
    return microbatch_chains(problem_from(document | memory)).problem


def units(problem: Problem) -> Units:
    return Units(problem, sequential(problem))


def test_annealing_exchanges_micro_batches() -> None:
    """Without heat no neighbours change places for the worse: exchange is what is left, and it finds more."""
    problem = chains([1.5, 0.5, 1, 2, 0.8])
    own = units(problem)
    annealer = Annealer(own)
    found = annealer.run(own.orders, [0, 0], GENTLE, 4000, 1)
    annealer.groups = annealer.groups[:0]
    without = annealer.run(own.orders, [0, 0], GENTLE, 4000, 1)
    assert found is not None and without is not None
    timeline = best_times(problem, found.schedule)
    assert validate(timeline) == []
    assert measure(timeline).makespan_ticks == found.value < without.value


def test_an_exchange_that_memory_does_not_hold_is_withdrawn() -> None:
    """A large micro-batch runs alone, beside small ones there is room for two; any exchange would mix them up."""
    problem = chains([3, 1, 1.5, 1.4, 1.6], capacity=6.5)
    own = units(problem)
    for seed in range(6):
        found = Annealer(own).run(own.orders, [0, 0], HOT, 4000, seed)
        assert found is not None
        assert validate(best_times(problem, found.schedule)) == []
