"""Drawn tiny problems of each kind whose optimum is found by trying all orders.

Every bound is compared with all of them (`claims.py`); a new kind of problem is a line in `DRAWERS`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import date
from fractions import Fraction
from functools import partial
from random import Random

from benchmarks.proofs.branch import FACTORS, scaled
from benchmarks.proofs.spans import opposite_directions
from pipesched.problem.blocks import Blocks
from pipesched.problem.feasibility import why_infeasible
from pipesched.problem.passes import B, F, W
from pipesched.problem.problem import Objective, Problem
from tests.support.collective_problems import tiny_collectives
from tests.support.daily import DAY, daily
from tests.support.exact_optimum import exact_optimum
from tests.support.exhaustive.optimum import least_value
from tests.support.mode_problems import copying_back, putting_off
from tests.support.module_problems import tiny_modules
from tests.support.norm_problems import tiny_norms
from tests.support.optima import OPTIMA
from tests.support.piece_problems import least_of, tiny_pieces, tiny_saving_pieces
from tests.support.rows_of_tasks import tiny_mirrored
from tests.support.small_memory import small_memory
from tests.support.task_brute_force import (
    TooManyOrdersError,
    optimum,
    tiny_gathers,
    tiny_reductions,
    tiny_tasks,
    with_lookups,
    with_parameters,
)
from tests.support.tasks_at_once import tiny_at_once
from tests.support.tiny_lent import tiny_lent
from tests.support.tiny_memory import tiny_memory, tiny_unequal_memory
from tests.support.tiny_partners import further_partners, tiny_partners
from tests.support.tiny_problem import tiny_problem
from tests.support.tiny_weights import tiny_weights


@dataclass(frozen=True)
class Drawer:
    """Problems of one kind, drawn at random, with their optimum by trying every order.

    `problems` are compared for fixed seeds, one in `days` of them on each day, and `of_day` for seeds of the day. `optimum` returns ticks, None where
    nothing fits. `aims` says how many problems at least must attain something: a certificate of that kind, or of that
    method, equal to the optimum; bounds of memory "alone" above all others; "best schedules" among the constructed
    ones. With `seed` one random generator draws all fixed problems. `further` are more fixed seeds, of what few
    problems attain.
    """

    make: Callable[[Random], Problem]
    problems: int
    optimum: Callable[[Problem], Fraction | int | None]
    aims: Mapping[str, int] = field(default_factory=dict)
    of_day: int = 0
    seed: int | None = None
    further: tuple[int, ...] = ()
    days: int = 2

    def compared(self) -> Iterator[tuple[str, Problem, Fraction | None]]:
        """Yield (name, problem, optimum in ticks) of the problems of which all orders can be tried; None where nothing
        fits."""
        one, today = None if self.seed is None else Random(self.seed), {*daily(range(self.problems), self.days)}
        for number in (*range(self.problems), *self.further):
            if number in today or number in self.further:
                yield from self._with_optimum(f"number {number}", one or Random(number))
            elif one is not None:
                self.make(one)
        with OPTIMA.every_order():
            for number in range(DAY * self.of_day, (DAY + 1) * self.of_day):
                yield from self._with_optimum(f"number {number} of day {date.fromordinal(DAY)}", Random(number))

    def _with_optimum(self, name: str, random: Random) -> Iterator[tuple[str, Problem, Fraction | None]]:
        problem = self.make(random)
        with suppress(TooManyOrdersError):
            best = self.optimum(problem)
            yield name, problem, None if best is None else Fraction(best)


def cheaper_in_one_go(random: Random) -> Problem:
    """Return a problem with forwards of several tasks and backwards of one, whose full backward may be faster than B
    and W."""
    problem = tiny_tasks(random)
    if not problem.splittable or problem.network.options:
        return problem
    stages = []
    for own in problem.stages:
        plain = replace(own, tasks=tuple(one for one in own.tasks if one[0] is F))
        most = max(1, plain.ticks(B) + plain.ticks(W))
        stages.append(replace(plain, fused=random.randint(1, most), freed=random.choice((own.freed, -1))))
    return replace(problem, stages=tuple(stages))


def _in_span(random: Random) -> Problem:
    return replace(tiny_problem(random), objective=Objective.SPAN)


def _mirrored_with_parameters(random: Random) -> Problem:
    return with_parameters(random, tiny_mirrored(random))


def _lookups(random: Random) -> Problem:
    return with_lookups(random, tiny_tasks(random))


def _of_passes(one: Problem) -> Fraction | None:
    return least_value(one, one.objective)


def _of_tasks(one: Problem, waits: int, orders: int) -> Fraction | None:
    return optimum(one, one.objective, waits, orders)


def _of_memory(one: Problem) -> Fraction | None:
    return optimum(one, one.objective, 5)


def _by_model(one: Problem) -> Fraction | None:
    return None if why_infeasible(one) is not None else exact_optimum(one)


def _that_save(random: Random) -> Problem:
    """Return a problem with overlapped blocks that take less than their two passes, by an amount of each stage."""
    one = tiny_problem(random)
    saves = [random.randint(0, min(stage.forward, stage.fused)) for stage in one.stages]
    one = one.with_stages(blocks=[Blocks(saves=one) for one in saves])
    return replace(one, objective=random.choice((Objective.MAKESPAN, Objective.SPAN)))


def tiny_unequal(random: Random) -> Problem:
    """Return a problem of micro-batches of several sizes, which run in a fixed or a free order."""
    one = tiny_problem(random).without_blocks()
    one = replace(one, objective=random.choice((Objective.MAKESPAN, Objective.SPAN)))
    return scaled(one, [random.choice(FACTORS) for _ in range(one.microbatches)], random.random() < 0.4)


_FEW, _MANY = partial(_of_tasks, waits=5, orders=300), partial(_of_tasks, waits=4, orders=50_000)
# The method (`claims.py`) that all problems have.
_ANALYTIC = "bounds without a search"
DRAWERS: dict[str, Drawer] = {
    "passes": Drawer(tiny_problem, 30, _of_passes, of_day=4, aims={
        _ANALYTIC: 30, "bounds of tasks as stages": 4, "cool-down": 3, "head and tail": 7, "in-flight limit": 2,
        "integral warm-up": 2, "load": 3, "round trip": 6, "unpaired passes": 4, "decision diagram": 1,
        "best schedules": 6,
    }),
    "passes in span": Drawer(_in_span, 30, _of_passes, of_day=4, aims={
        "cool-down": 3, "head and tail": 7, "integral warm-up": 2, "round trip": 6, "unpaired passes": 4,
    }),
    "blocks that save time": Drawer(_that_save, 40, _of_passes, of_day=4, further=(93,), aims={
        "unpaired passes": 12, "in-flight limit": 3, "memory and modes": 1,
    }),
    "unequal micro-batches": Drawer(tiny_unequal, 25, _of_passes, of_day=4, days=1, further=(5919602,), aims={
        "head and tail in order": 2, "cool-down": 6, "decision diagram": 1,
    }),
    "spans that are fractions": Drawer(opposite_directions, 25, _of_passes, of_day=3, aims={"round trip": 5}),
    "tasks": Drawer(tiny_tasks, 40, _MANY, {"stream heads and tails": 10, "stream memory": 7}),
    "backwards that gain in one go": Drawer(cheaper_in_one_go, 40, _MANY, {
        "stream heads and tails": 15, "memory over time of tasks": 2, "waiting weight tasks": 5,
    }),
    "weight tasks that wait": Drawer(tiny_weights, 30, _MANY, {"waiting weight tasks": 5, "memory alone": 1}),
    "mirrored tasks": Drawer(tiny_mirrored, 30, _FEW, seed=7, aims={
        "bounds of tasks as stages": 13, "bounds of tasks as any rows of stages": 9, "tasks as stages": 2,
    }),
    "mirrored tasks and parameters": Drawer(_mirrored_with_parameters, 100, _FEW, seed=2, aims={
        "stream heads and tails": 8, "memory alone": 1, "best schedules": 20,
    }),
    "tasks of several streams at once": Drawer(tiny_at_once, 60, least_of, {"load": 9, "stream heads and tails": 12}, days=1),
    "norms": Drawer(tiny_norms, 60, least_of, {"load": 2, "stream heads and tails": 9}),
    "gatherings": Drawer(tiny_gathers, 20, _FEW, {"a solve of plain passes": 4, "load": 4}),
    "reductions and steps": Drawer(tiny_reductions, 20, _FEW, {"stream heads and tails": 3, "load": 1}),
    "lookups": Drawer(_lookups, 40, _FEW, {"stream heads and tails": 5, "bounds of tasks as stages": 2}, days=1),
    "pieces": Drawer(tiny_pieces, 20, least_of, {"a solve of plain passes": 2, "stream heads and tails": 7}),
    "pieces that save memory": Drawer(tiny_saving_pieces, 30, least_of, {"memory and copies": 3}),
    "modules": Drawer(tiny_modules, 20, least_of, {"a solve of plain passes": 2, "stream heads and tails": 6}),
    "collectives": Drawer(tiny_collectives, 25, least_of, {"a solve of plain passes": 2, "load": 3}),
    "saved activations": Drawer(tiny_memory, 25, _of_memory, {
        "diagrams of activation modes": 8, "memory and copies": 7, "decision diagram": 8,
    }),
    "saved activations of unequal micro-batches": Drawer(tiny_unequal_memory, 20, _of_memory, {"memory and copies": 4}),
    "copies to other devices": Drawer(tiny_lent, 30, _of_memory, {"memory and copies": 6, "cool-down": 3}),
    "copies as long as passes": Drawer(small_memory, 20, _by_model, {
        "diagrams of activation modes": 10, "memory and copies": 8,
    }),
    "partners": Drawer(tiny_partners, 20, _by_model, {"searches with partners' memory": 4}),
    "partners and more": Drawer(further_partners, 20, _by_model, {"searches with partners' memory": 2}),
    "copies back": Drawer(copying_back, 20, _by_model, {"diagrams of activation modes": 9}),
    "recomputation put off": Drawer(putting_off, 20, _by_model, {"diagrams of activation modes": 7}),
}  # fmt: skip
