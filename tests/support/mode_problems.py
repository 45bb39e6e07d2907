"""Small problems aimed at the activations of one device: V shapes, weight passes that wait, several modes."""

from __future__ import annotations

from random import Random

from pipesched.problem import placement
from pipesched.problem.features.device_resources import Pool
from pipesched.problem.memory_options import Offload, Recomputation
from pipesched.problem.placement import Placement
from pipesched.problem.problem import Objective, Problem
from pipesched.problem.stage import COMPUTE, Stage
from tests.support.small_memory import small_memory
from tests.support.tiny_memory import tiny_memory

_V, _UNEVEN = placement.explicit(2, [0, 1, 1, 0]), placement.explicit(2, [0, 1, 0])
# Placements with the most micro-batches.
_SHAPES: tuple[tuple[Placement, int], ...] = (
    (placement.linear(1), 4),
    (placement.linear(2), 3),
    (placement.linear(3), 2),
    (placement.explicit(1, [0, 0]), 2),
    (_V, 2),
    (_UNEVEN, 2),
    (placement.bidirectional(2), 2),
)
_STREAMS = (("d2h", "h2d"), ("copy", "copy"), ("copy", COMPUTE), (COMPUTE, "copy"))


def mode_problem(rng: Random) -> Problem:
    """Return a problem of one of five kinds, each aimed at another limit of one device's activations."""
    return rng.choice((small_memory, tiny_memory, putting_off, copying_back, _tight))(rng)


def putting_off(rng: Random) -> Problem:
    """Return a problem of long weight passes, some of which can wait for memory or for the gradients to return."""
    forward, backward, weight = rng.randint(1, 3), rng.randint(1, 3), rng.randint(3, 9)
    again = (Recomputation("full", rng.randint(1, 3), 0),)
    stage = Stage(forward, backward, weight, backward + weight, rng.randint(0, 3), recompute=again)
    room = Pool(rng.choice((1, 2, 2, 3)))
    return Problem(placement.linear(2), 3, (stage, stage), (room, room), Objective.MAKESPAN)


def copying_back(rng: Random) -> Problem:
    """Copies on streams of their own that return during long passes, as far as memory has room.

    Of two devices the first one has memory and a long path back, during which weight passes of the second may run.
    """
    splits, whole = rng.random() < 0.8, rng.choice((1, 2))
    backward, weight = rng.randint(1, 4), rng.randint(1, 8)
    offload = Offload(rng.randint(0, 1), rng.randint(1, 4), "d2h", "h2d", rng.randint(1, whole))
    stage = Stage(
        rng.randint(0, 3),
        backward,
        weight if splits else None,
        backward + (weight if splits else 0),
        activation=whole,
        freed=rng.choice((0, 0, whole)) if splits else 0,
        offload=offload,
        may_keep=rng.random() < 0.3,
    )
    room, objective = Pool(rng.randint(whole, 3 * whole)), rng.choice((Objective.MAKESPAN, Objective.SPAN))
    if rng.random() < 0.3:
        return Problem(placement.linear(1), rng.choice((3, 4)), (stage,), (room,), objective)
    back = rng.randint(4, 24)
    first = Stage(rng.randint(0, 2), back, 0 if splits else None, back, activation=0)
    return Problem(placement.linear(2), 3, (first, stage), (Pool(None), room), Objective.MAKESPAN)


def _tight(rng: Random) -> Problem:
    """Return a problem with room for little more than one activation of each stage, several modes, and short stages."""
    where, most = rng.choice(_SHAPES)
    splits, longest, streams = rng.random() < 0.5, rng.choice((2, 4, 8)), rng.choice(_STREAMS)

    def some() -> int:
        return rng.randint(0, longest)

    def one() -> Stage:
        whole, backward, weight = rng.randint(1, 4), some(), some()
        offload = Offload(some(), some(), *streams, rng.randint(1, whole)) if rng.random() < 0.5 else None
        again = [Recomputation(f"way-{n}", some(), rng.randint(0, whole)) for n in range(rng.choice((0, 1, 2)))]
        return Stage(
            some(),
            backward,
            weight if splits else None,
            rng.choice((backward + weight, rng.randint(0, backward + weight))) if splits else backward,
            rng.choice((0, some())),
            activation=whole,
            freed=rng.choice((0, rng.randint(-1, whole))) if splits else 0,
            offload=offload,
            recompute=tuple(again),
            may_keep=rng.random() < 0.75 or not (offload or again),
        )

    stages = tuple(one() for _ in range(where.stages))
    activations = [[stages[s].activation for s in stages_of_device] for stages_of_device in where.stages_of]
    pools = tuple(Pool(sum(amounts) + rng.choice((0, 0, 1, 2, max(amounts)))) for amounts in activations)
    objective = rng.choice((Objective.MAKESPAN, Objective.MAKESPAN, Objective.SPAN))
    return Problem(where, rng.randint(min(2, most), most), stages, pools, objective)
