"""Tiny problems whose passes are several tasks, and random rows of tasks that the relaxation `TasksAsStages` allows.

A row is a forward, a backward and perhaps a weight task of one stage on one stream, treated as a stage of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from random import Random
from threading import Event

from pipesched.checking.streams.tasks_as_stages import Row, as_plain
from pipesched.problem import placement
from pipesched.problem.passes import BW, B, F, PassKind, W
from pipesched.problem.placement import Placement
from pipesched.problem.problem import Objective, Problem
from pipesched.problem.stage import Stage, TaskSpec
from pipesched.results.certificate import Certificate
from pipesched.results.evidence import OfRelaxed, TasksAsStages
from solver.bounds.saving.certificates import certificates
from solver.diagram.all_orders import bounds_of_all_orders
from tests.support.columns import Costs, Memory, build, with_tasks

# Placements, micro-batches, and how many tasks a pass is made of at most; whether backwards may split.
_SHAPES: tuple[tuple[Placement, int, int, bool], ...] = (
    (placement.linear(1), 3, 2, False),
    (placement.linear(1), 2, 3, False),
    (placement.linear(1), 2, 2, True),
    (placement.linear(2), 2, 2, False),
    (placement.linear(2), 1, 3, True),
    (placement.explicit(1, [0, 0]), 2, 2, False),
    (placement.explicit(1, [0, 0]), 1, 2, True),
    (placement.bidirectional(2), 2, 2, False),
    (placement.v_shape(2), 1, 2, False),
)


def tiny_mirrored(random: Random) -> Problem:
    """Return a problem with passes of tasks on one or two streams, backwards mostly the forwards' tasks in reverse.

    A full backward is B with each task of W after its predecessors.
    """
    where, microbatches, parts, splits = random.choice(_SHAPES)
    stages, longest = where.stages, random.choice((1, 3, 6))
    streams = ("compute", "comm")[: random.choice((1, 2, 2))]

    def task() -> TaskSpec:
        return TaskSpec(random.choice(streams), random.randint(0, longest))

    tasks: dict[tuple[PassKind, int], tuple[TaskSpec, ...]] = {}
    for stage in range(stages):
        forward = tuple(task() for _ in range(random.randint(1, parts)))
        backward = tuple(one._replace(ticks=random.randint(0, longest)) for one in reversed(forward))
        if random.random() < 0.4:
            backward = (*(task() for _ in range(random.randint(0, parts - 1))), forward[0])
        tasks[F, stage] = forward
        weight = tuple(
            task()._replace(after=random.choice((None, *range(len(backward))))) for _ in range(random.randint(1, 2))
        )
        tasks |= {(B, stage): backward, (W, stage): weight} if splits else {}
        tasks[BW, stage] = tuple(_in_one_go(backward, weight)) if splits else backward
    zeros = (0,) * stages
    activation = tuple(random.randint(1, 3) for _ in zeros)
    freed = tuple(random.choice((0, random.randint(-2, amount), amount)) for amount in activation)
    capacity = tuple(
        None if random.random() < 0.3 else sum(activation[s] for s in stages_of_device) + random.randint(0, 3)
        for stages_of_device in where.stages_of
    )
    transfer = tuple(random.choice((0, random.randint(0, 3))) for _ in zeros)
    costs = Costs(zeros, zeros, zeros if splits else None, zeros, transfer)
    one = with_tasks(build(where, microbatches, costs, Memory(activation, freed, capacity)), tasks)
    devices = range(where.devices)
    links = tuple(tuple(0 if a == b else random.randint(0, 3) for b in devices) for a in devices)
    objective = random.choice((Objective.MAKESPAN, Objective.SPAN))
    return replace(one, objective=objective, links=links if random.random() < 0.4 else ())


def _in_one_go(backward: Sequence[TaskSpec], weight: Sequence[TaskSpec]) -> Iterator[TaskSpec]:
    for part, task in enumerate(backward):
        yield task
        yield from (one._replace(after=None) for one in weight if one.after == part)
    yield from (one for one in weight if one.after is None)


def random_rows(random: Random, one: Problem) -> tuple[Row, ...]:
    """Return random rows of tasks that break no condition of `TasksAsStages`."""
    return tuple(row for chain in one.placement.chains for s in chain for row in _rows(random, one.stages[s], s))


def _rows(random: Random, stage: Stage, number: int) -> list[Row]:
    forward, backward = stage.tasks_of(F), stage.tasks_of(BW if stage.weight is None else B)
    weight = () if stage.weight is None else stage.tasks_of(W)
    skipped = random.choice((0.0, 0.2))
    rows: list[Row] = []
    f, b, left = 0, len(backward) - 1, set(range(len(weight)))
    while f < len(forward) and b >= 0:
        if forward[f].stream != backward[b].stream or random.random() < skipped:
            f, b = random.choice(((f + 1, b), (f, b - 1)))
            continue
        last = len(backward) - 1
        ready = ((w, last if weight[w].after is None else weight[w].after) for w in left)
        fits = [w for w, after in ready if weight[w].stream == forward[f].stream and (after or 0) >= b]
        w = random.choice(fits) if fits and random.random() < 0.8 else None
        left.discard(w)
        rows.append((number, f, b, w))
        f, b = f + 1, b - 1
    return rows or [(number, *pair, None) for pair in _pair(forward, backward)]


def _pair(forward: Sequence[TaskSpec], backward: Sequence[TaskSpec]) -> list[tuple[int, int]]:
    """Return the first pair of a forward and a backward task on one stream, by index; empty if there is none."""
    pairs = [(f, b) for f, one in enumerate(forward) for b, other in enumerate(backward) if one.stream == other.stream]
    return pairs[:1]


def proved_of(plain: Problem) -> list[Certificate]:
    """Return every certificate of the problem of the rows: of analytic bounds and of decision diagrams."""
    return [*certificates(plain, plain.objective), *bounds_of_all_orders(plain, Event(), 64)]


def carried(one: Problem, rows: tuple[Row, ...]) -> list[Certificate]:
    """Return the bounds proved for the problem of the rows, as certificates of the problem `one` itself."""
    as_tasks = TasksAsStages(rows)
    return [
        replace(found, kind="tasks as stages", evidence=OfRelaxed(as_tasks, found.kind, found.evidence))
        for found in proved_of(as_plain(one, as_tasks))
        if found.evidence is not None
    ]
