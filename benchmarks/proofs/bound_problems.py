"""Tiny random problems that exercise a given branch of a bound, and their neighbours one number away."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from benchmarks.proofs.branch import Likely
from pipesched.problem import placement
from pipesched.problem.features.device_resources import Pool
from pipesched.problem.placement import Placement
from pipesched.problem.problem import Objective, Problem
from pipesched.problem.stage_columns import stages_of

# What is changed between a problem and its neighbours, beside links.
_NUMBERS = ("forward", "backward", "weight", "fused", "transfer", "activation", "freed", "capacity")
# Placements, and how many micro-batches can be tried in every order: with a split backward, and with full ones only.
_LINE = (placement.linear(2), 4, 5)
_BIDIRECTIONAL = (placement.bidirectional(2), 3, 4)
_SHAPES: tuple[tuple[Placement, int, int], ...] = (
    (placement.linear(1), 3, 4),
    (placement.linear(3), 3, 4),
    (placement.v_shape(1), 2, 2),
    (placement.v_shape(2), 2, 3),
    (placement.interleaved(2, 2), 2, 3),
    _BIDIRECTIONAL,
    (placement.explicit(2, [0, 1, 1]), 2, 3),
    (placement.explicit(2, [0, 1, 0]), 2, 3),
    (placement.explicit(2, [1, 0]), 3, 4),
    (placement.explicit(3, [2, 0, 1, 0]), 2, 2),
)


def draw(random: Random, likely: Likely) -> Problem:
    """A problem with these chances; times with zeros, memory from just enough to plenty."""
    where, most_split, most_whole = _LINE if random.random() < likely.linear else random.choice(_SHAPES)
    # Without a draw where there are to be none, so that problems of other branches stay as they are.
    if likely.bidirectional > 0 and random.random() < likely.bidirectional:
        where, most_split, most_whole = _BIDIRECTIONAL
    stages, whole_only = where.stages, random.random() < likely.whole_only
    most = min(likely.most + whole_only, most_whole if whole_only else most_split)
    microbatches = random.randint(min(likely.fewest, most), most)
    equal, objective = random.random() < 0.4, random.choice((Objective.MAKESPAN, Objective.SPAN))

    def ticks(long: float) -> tuple[int, ...]:
        drawn = [0 if _zero(random, likely) else _ticks(random, long, likely.longest) for _ in range(stages)]
        return (drawn[0],) * stages if equal else tuple(drawn)

    forward, backward, weight = ticks(0.1), ticks(0.1), ticks(likely.long_weights)
    fused = tuple(b + w + random.randint(0, 2) for b, w in zip(backward, weight, strict=True))
    if random.random() < likely.short_whole:
        fused = tuple(max(0, whole - random.randint(0, 1 + w)) for whole, w in zip(fused, weight, strict=True))
    transfer = ticks(likely.long_links) if random.random() < 0.9 else (0,) * stages
    overlapped = None
    if random.random() < likely.blocks:
        overlapped = tuple(random.randint(0, f + x + 1) for f, x in zip(forward, fused, strict=True))
    activation = tuple(random.randint(random.random() > 0.1, 8) for _ in range(stages))
    if equal:
        activation = (activation[0],) * stages
    freed = tuple(freed_of(random, random.choice(likely.freed), a) for a in activation)
    capacity = tuple(
        _capacity(random, likely, where, device, activation, microbatches) for device in range(where.devices)
    )
    first, second = (fused, None) if whole_only else (backward, weight)
    stages_drawn = stages_of(forward, first, second, fused, transfer, overlapped, activation=activation, freed=freed)
    links = _links(random, likely, where.devices) if random.random() < 0.2 else ()
    return Problem(where, microbatches, stages_drawn, tuple(map(Pool, capacity)), objective, links=links)


def _links(random: Random, likely: Likely, devices: int) -> tuple[tuple[int, ...], ...]:
    """Time of each link between two devices on top of a transfer; both directions are drawn by themselves."""
    long = likely.long_links / 2, likely.longest
    rows = [[_ticks(random, *long) if a != b else 0 for b in range(devices)] for a in range(devices)]
    return tuple(map(tuple, rows))


def _zero(random: Random, likely: Likely) -> bool:
    """Without a draw where there are to be none, so that problems of other branches stay as they are."""
    return likely.zeros > 0 and random.random() < likely.zeros


def _ticks(random: Random, long: float, longest: int) -> int:
    return random.randint(10, longest) if random.random() < long else random.randint(0, 6)


def freed_of(random: Random, word: str, activation: int) -> int:
    """The part of an activation that B gives back, in the terms of `Likely`; all where there is no part."""
    if word == "part" and activation > 1:
        return random.randint(1, activation - 1)
    return {"none": 0, "less": -random.randint(1, 4)}.get(word, activation)


def _capacity(
    random: Random, likely: Likely, where: Placement, device: int, activation: tuple[int, ...], microbatches: int
) -> int | None:
    if random.random() < likely.unlimited:
        return None
    if _zero(random, likely):
        return _needed(where, device, activation)
    needed, most = (
        _needed(where, device, activation),
        microbatches * sum(activation[s] for s in where.stages_of[device]),
    )
    open_ = max(0, most - needed)
    return needed + random.randint(0, open_ // 2 if random.random() < likely.tight else open_ + 3)


def _needed(where: Placement, device: int, activation: tuple[int, ...]) -> int:
    """The memory that the device must have for one micro-batch."""
    return max(sum(activation[s] for s in chain if where.stage_device[s] == device) for chain in where.chains)


def changed(random: Random, problem: Problem, likely: Likely) -> Problem:
    """The same but for one number, or one of each stage; it keeps some schedule."""
    name = random.choice((*_NUMBERS, "links") if problem.links and problem.devices > 1 else _NUMBERS)
    if random.random() < 0.05:
        return replace(problem, microbatches=max(1, min(5, problem.microbatches + random.choice((-1, 1)))))
    if name == "capacity":
        room = list(problem.room)
        index = random.randrange(len(room))
        capacity = room[index]
        room[index] = None if capacity is None else max(0, _near(random, capacity, likely))
        return _roomy(problem.with_room(room))
    if name == "links":
        return _with_other_link(random, problem, likely)
    values = [getattr(stage, name) for stage in problem.stages]
    if name in ("activation", "freed"):
        index = random.randrange(len(values))
        values[index] = max(-4 if name == "freed" else 0, _near(random, values[index], likely))
        one = problem.with_stages(**{name: values})
        return _roomy(one.with_stages(freed=[min(stage.freed, stage.activation) for stage in one.stages]))
    if None in values:
        return problem
    every = random.random() < 0.3
    index, value = random.randrange(len(values)), _near(random, random.choice(values), likely)
    one = problem.with_stages(**{name: [max(0, value if every or n == index else x) for n, x in enumerate(values)]})
    return one if one.splittable else one.with_stages(backward=[stage.fused for stage in one.stages])


def _with_other_link(random: Random, problem: Problem, likely: Likely) -> Problem:
    """The same but for the link from one device to another."""
    links = [list(row) for row in problem.links or ()]
    here, there = random.sample(range(problem.devices), 2)
    links[here][there] = max(0, _near(random, links[here][there], likely))
    return replace(problem, links=tuple(map(tuple, links)))


def _near(random: Random, value: int, likely: Likely) -> int:
    """A number near another: one more or less, half or twice as much, nothing, or any short time."""
    return random.choice((value - 1, value + 1, value // 2, 2 * value, 0, _ticks(random, 0.2, likely.longest)))


def _roomy(problem: Problem) -> Problem:
    """The same with just enough memory where there is less."""
    where, in_flight = problem.placement, problem.network.memory_in_flight
    needed = [_needed(where, device, in_flight) for device in range(problem.devices)]
    return problem.with_room([None if c is None else max(c, n) for c, n in zip(problem.room, needed, strict=True)])
