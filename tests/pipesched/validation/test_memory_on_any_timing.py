"""Memory over several streams: just those orders and waits are valid of which no state holds too much."""

from __future__ import annotations

from itertools import combinations
from random import Random
from typing import Any

import numpy as np
from ortools.sat.python import cp_model

from formulations.exact.exact_model import ExactModel
from formulations.jobs.jobs import Jobs
from formulations.jobs.jobs_of_problem import jobs_of
from formulations.jobs.schedule_of_starts import schedule_of_starts
from pipesched.files.problem_file import problem_from
from pipesched.problem.passes import parse_pass
from pipesched.problem.problem import Problem
from pipesched.schedule.metrics import measure
from pipesched.schedule.schedule import Schedule
from pipesched.schedule.timeline import Timeline
from pipesched.simulation.simulator import simulate
from pipesched.validation.memory_order_rule import Units
from pipesched.validation.validator import validate


def test_units_are_handed_out_wherever_all_takers_can_have_enough() -> None:
    """By Hall's theorem: no takers together want more than the stock and what those give whom one of them may take of."""
    exchanged = 0

    class Counted(Units):
        def _search(self, taker: int) -> tuple[int | None, dict[int, int], dict[int, int | None]]:
            nonlocal exchanged
            source, asks, has = super()._search(taker)
            exchanged += source is not None and asks[source] != taker
            return source, asks, has

    for seed in range(1500):
        rng = Random(seed)
        takers, givers, stock = rng.randint(2, 6), rng.randint(2, 5), rng.randint(0, 2)
        given = np.array([[rng.random() < 0.6 for _ in range(givers)] for _ in range(takers)])
        wanted, amounts = ([rng.randint(1, 3) for _ in range(count)] for count in (takers, givers))

        def too_much(state: tuple[int, ...], given=given, wanted=wanted, amounts=amounts, stock=stock) -> bool:
            may = given[list(state)].any(axis=0)
            return sum(wanted[t] for t in state) > stock + sum(a for a, some in zip(amounts, may, strict=True) if some)

        units = Counted(given, amounts, stock)
        for taker in range(takers):
            refused = any(too_much(state) for n in range(taker + 1) for state in combinations(range(taker + 1), n + 1))
            state = units.hand_out(taker, wanted[taker])
            assert bool(state) == refused, seed
            if refused:
                assert too_much(tuple(state)), seed
                break
            had = [sum(held.get(one, 0) for held in units._users) for one in range(taker + 1)]
            assert had == wanted[: taker + 1], seed
    assert exchanged > 40


def test_a_mistake_says_what_may_be_held_with_what_the_device_always_holds() -> None:
    document = OFFLOAD | {"memory": OFFLOAD["memory"] | {"capacity": 7, "static": 5}}
    problem = problem_from(document)
    timeline = simulate(problem, at(problem, STARTS))
    bare = Schedule(timeline.schedule.orders, "", timeline.schedule.task_orders)
    found = [one.text for one in validate(Timeline(problem, bare, timeline.starts)) if one.rule == "memory"]
    assert "device 0 may hold 8 activations when F0.2 starts" in found[0]
    assert "its capacity is 7 activations" in found[0]


# Found by a model with timed memory: L0.2 starts while W0.1 has given back what F0.4, behind it, takes.
OFFLOAD: dict[str, Any] = {
    "devices": 3,
    "microbatches": 6,
    "streams": ["compute", "copy"],
    "times": {"forward": 10, "backward": 10, "weight": 6, "transfer": 1},
    "memory": {
        "capacity": 2,
        "activation": 1,
        "offload": {"out": 15, "in": 15, "on": "copy"},
        "decide": {"offload": "free"},
    },
    "objective": "makespan",
}
STARTS = """
F0.0 0 B0.0 121 W0.0 131 O0.0 10 L0.0 106 F0.1 10 B0.1 64 W0.1 74 F0.2 25 B0.2 90 W0.2 100 O0.2 35 L0.2 75 F0.3 50
B0.3 184 W0.3 194 O0.3 60 L0.3 167 F0.4 80 B0.4 151 W0.4 161 O0.4 90 L0.4 136 F0.5 106 B0.5 168 W0.5 178 O0.5 121 L0.5
151 F1.0 11 B1.0 109 W1.0 119 O1.0 21 L1.0 94 F1.1 21 B1.1 53 W1.1 63 F1.2 36 B1.2 79 W1.2 89 F1.3 69 B1.3 173 W1.3
183 O1.3 79 L1.3 155 F1.4 95 B1.4 139 W1.4 149 O1.4 109 L1.4 124 F1.5 125 B1.5 157 W1.5 167 F2.0 22 B2.0 78 W2.0 88
F2.1 32 B2.1 42 W2.1 52 F2.2 58 B2.2 68 W2.2 104 F2.3 94 B2.3 156 W2.3 166 O2.3 104 L2.3 119 F2.4 110 B2.4 120 W2.4
130 F2.5 136 B2.5 146 W2.5 172
"""


def starts_of(jobs: Jobs, text: str) -> dict[int, int]:
    """The start of each job, in steps, of passes with their starts in ticks."""
    words = text.split()
    begin = {parse_pass(name): int(start) * jobs.scale for name, start in zip(words[::2], words[1::2], strict=True)}
    return {n: begin[job.task.of] for n, job in enumerate(jobs.jobs) if job.task.of in begin}


def at(problem: Problem, text: str) -> Schedule:
    """The schedule with these starts."""
    jobs = jobs_of(problem)
    schedule = schedule_of_starts(jobs, starts_of(jobs, text))
    assert schedule is not None
    return schedule


def test_what_is_given_back_before_a_pass_behind_begins_is_there() -> None:
    """A stricter rule called 202 optimal: this schedule takes 200, with six waits, and the model holds it."""
    problem = problem_from(OFFLOAD)
    schedule = at(problem, STARTS)
    assert len(schedule.waits) == 6
    timeline = simulate(problem, schedule)
    assert validate(timeline) == []
    assert measure(timeline).makespan_ticks == 200
    jobs = jobs_of(problem)
    model = ExactModel(jobs, 200, 0)
    for n, start in starts_of(jobs, STARTS).items():
        model.cp.add(model.model.start[model.model.operations.of[n]] == start)
    assert cp_model.CpSolver().solve(model.cp) == cp_model.OPTIMAL
