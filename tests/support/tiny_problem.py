"""Tiny problems of whole passes, at random."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from pipesched.problem import placement
from pipesched.problem.placement import Placement
from pipesched.problem.problem import Problem
from tests.support.columns import Costs, Memory, build

# Placements, and how many micro-batches of them can be tried in every order: with a split backward, and fused only.
SHAPES: tuple[tuple[Placement, int, int], ...] = (
    (placement.linear(1), 3, 4),
    (placement.linear(2), 2, 4),
    (placement.linear(3), 2, 3),
    (placement.v_shape(1), 1, 2),
    (placement.v_shape(2), 1, 2),
    (placement.interleaved(2, 2), 1, 2),
    (placement.wave(1, 3), 1, 1),
    (placement.bidirectional(2), 2, 3),
    (placement.explicit(2, [0, 1, 1]), 1, 2),
    (placement.explicit(2, [0, 1, 0]), 1, 2),
    (placement.explicit(2, [1, 0]), 2, 3),
    (placement.explicit(3, [2, 0, 1, 0]), 1, 2),
)


def tiny_problem(random: Random, shapes: tuple[tuple[Placement, int, int], ...] = SHAPES) -> Problem:
    """Return a problem with random times, transfers and memory, from too little to ample; blocks by chance."""
    where, most_split, most_fused = random.choice(shapes)
    stages, split = where.stages, random.random() < 0.6
    microbatches = random.randint(1, most_split if split else most_fused)
    equal, longest = random.random() < 0.4, random.choice((2, 6, 12))

    def ticks(low: int = 0, high: int = longest) -> tuple[int, ...]:
        drawn = [random.randint(low, high) for _ in range(stages)]
        return (drawn[0],) * stages if equal else tuple(drawn)

    forward, backward, weight = ticks(), ticks(), ticks()
    fused = tuple(max(0, b + w + more) for b, w, more in zip(backward, weight, ticks(-3, 2), strict=True))
    if random.random() < 0.2:
        fused = ticks()
    elif random.random() < 0.4:
        fused = tuple(b + w for b, w in zip(backward, weight, strict=True))
    overlapped = None
    if random.random() < (0.2 if split else 0.4):
        overlapped = tuple(random.randint(0, f + x + 1) for f, x in zip(forward, fused, strict=True))
    transfer = ticks() if random.random() < 0.7 else (0,) * stages
    if split:
        costs = Costs(forward, backward, weight, fused, transfer, overlapped)
    else:
        costs = Costs(forward, fused, None, fused, transfer, overlapped)
    activation = ticks(0 if random.random() < 0.2 else 1, 3)
    most = activation if random.random() < 0.5 else tuple(min(1, a) for a in activation)
    freed = tuple(random.choice((0, random.randint(-2, a), a)) for a in most)
    capacity: list[int | None] = []
    for device, stages_of_device in enumerate(where.stages_of):
        needed = max(sum(activation[s] for s in c if where.stage_device[s] == device) for c in where.chains)
        most_live = microbatches * sum(activation[s] for s in stages_of_device)
        limit = random.randint(
            needed - (random.random() < 0.05), needed + max(0, most_live - needed) // random.randint(1, 3)
        )
        capacity.append(None if random.random() < 0.15 else limit)
    one = build(where, microbatches, costs, Memory(activation, freed, tuple(capacity)))
    if random.random() < 0.25:
        devices = range(where.devices)
        return replace(one, links=tuple(tuple(random.randint(0, longest) for _ in devices) for _ in devices))
    return one
