"""Drawn tiny problems of each kind whose optimum is found by trying all orders, and the claims that are compared with it.

A new bound is compared with all of them; a new kind of problem is a line in `DRAWERS`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from itertools import count, islice
from random import Random

from pipesched.problem.passes import B, F, W
from pipesched.problem.problem import Objective, Problem
from pipesched.results.certificate import Certificate
from solver.bounds.saving.certificates import certificates
from solver.tasks.as_stages import cut
from tests.support.brute_force import optimum as optimum_of_passes
from tests.support.brute_force import tiny_problem
from tests.support.collective_problems import tiny_collectives
from tests.support.module_problems import tiny_modules
from tests.support.piece_problems import least_of, tiny_pieces, tiny_saving_pieces
from tests.support.rows_of_tasks import carried, proved_of, random_rows, tiny_mirrored
from tests.support.task_brute_force import (
    TooManyOrdersError,
    optimum,
    tiny_gathers,
    tiny_reductions,
    tiny_tasks,
    with_lookups,
    with_parameters,
)
from tests.support.tiny_weights import tiny_weights


@dataclass(frozen=True)
class Drawer:
    """Endless problems of one kind, how many of them are compared, and the least value of every order of one."""

    draw: Callable[[], Iterator[Problem]]
    problems: int
    optimum: Callable[[Problem], Fraction | int | None]
    rows: bool = False

    def claims(self, one: Problem) -> Iterator[Certificate]:
        """Everything that is proved of a problem without a search, and with `rows` of tasks as any rows of stages."""
        yield from certificates(one, one.objective)
        relaxed = (
            None if any(stage.entry(F) for stage in one.stages) else cut(one)
        )  # a search leaves lookups out before
        if relaxed is not None:
            yield from map(relaxed.claim, proved_of(relaxed.plain))
        if self.rows:
            yield from carried(one, random_rows(Random(one.microbatches), one))

    def compared(self) -> Iterator[tuple[Problem, Fraction | int | None]]:
        """The problems of which all orders can be tried, with their optimum; None where nothing fits."""
        for one in islice(self.draw(), self.problems):
            with suppress(TooManyOrdersError):
                yield one, self.optimum(one)


def _seeds(make: Callable[[Random], Problem]) -> Callable[[], Iterator[Problem]]:
    return lambda: map(make, map(Random, count()))


def _one_random(make: Callable[[Random], Problem], seed: int) -> Callable[[], Iterator[Problem]]:
    def draw() -> Iterator[Problem]:
        random = Random(seed)
        return (make(random) for _ in count())

    return draw


def cheaper_in_one_go(random: Random) -> Problem:
    """Passes of several tasks, but backwards of one each, which may gain in one go."""
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


def _of_passes(one: Problem) -> int | None:
    found = optimum_of_passes(one, one.objective)
    return None if found is None else found.value


def _of_tasks(one: Problem, waits: int, orders: int) -> Fraction | None:
    return optimum(one, one.objective, waits, orders)


_FEW, _MANY = partial(_of_tasks, waits=5, orders=300), partial(_of_tasks, waits=4, orders=50_000)
DRAWERS: dict[str, Drawer] = {
    "passes": Drawer(_seeds(tiny_problem), 80, _of_passes),
    "passes in span": Drawer(_seeds(_in_span), 80, _of_passes),
    "tasks": Drawer(_seeds(tiny_tasks), 100, _MANY),
    "backwards that gain in one go": Drawer(_seeds(cheaper_in_one_go), 100, _MANY),
    "weight tasks that wait": Drawer(_seeds(tiny_weights), 60, _MANY),
    "mirrored tasks": Drawer(_one_random(tiny_mirrored, 7), 60, _FEW, rows=True),
    "mirrored tasks and parameters": Drawer(_one_random(_mirrored_with_parameters, 2), 300, _FEW),
    "gatherings": Drawer(_seeds(tiny_gathers), 40, _FEW),
    "reductions and steps": Drawer(_seeds(tiny_reductions), 40, _FEW),
    "lookups": Drawer(_seeds(_lookups), 40, _FEW),
    "pieces": Drawer(_seeds(tiny_pieces), 40, least_of),
    "pieces that save memory": Drawer(_seeds(tiny_saving_pieces), 30, least_of),
    "modules": Drawer(_seeds(tiny_modules), 40, least_of),
    "collectives": Drawer(_seeds(tiny_collectives), 60, least_of),
}
