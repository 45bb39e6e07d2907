"""Orders in which unequal micro-batches enter a pipeline, and schedules with their micro-batches in such an order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pipesched.errors import DoesNotApply
from pipesched.problem.problem import Problem
from pipesched.schedule.schedule import Schedule, schedule_of


def small_at_both_ends(problem: Problem) -> tuple[int, ...]:
    """The smallest micro-batches first and last, the largest in the middle (verl, `rearrange_micro_batches`).

    Sorted by their work, the largest first: every other one from the smallest up, then the others down.
    """
    falling = largest_first(problem)
    return (*falling[::2][::-1], *falling[1::2])


def largest_first(problem: Problem) -> tuple[int, ...]:
    """By their work, the largest first."""
    scale = problem.walks.scale
    return tuple(sorted(range(problem.microbatches), key=lambda j: (-scale[j], j)))


def orders(problem: Problem) -> Iterator[tuple[int, ...]]:
    """The orders worth trying: small ones at both ends, the largest first, the smallest first."""
    yield small_at_both_ends(problem)
    yield largest_first(problem)
    yield largest_first(problem)[::-1]


def any_order(problem: Problem) -> None:
    """Refuses problems whose micro-batches are alike, walk several chains, or keep their order."""
    if not problem.walks.scale:
        raise DoesNotApply("needs unequal micro-batches: give microbatch_scale")
    if problem.walks.queues:
        raise DoesNotApply("needs unequal micro-batches in any order: microbatch_order: free")
    if len(problem.placement.chains) > 1:
        raise DoesNotApply(f"needs micro-batches that all walk one chain; the placement is {problem.placement.name}")


def renumbered(schedule: Schedule, order: Sequence[int], name: str) -> Schedule:
    """The schedule with `order[j]` in the place of micro-batch j."""
    devices = range(schedule.columns.devices)
    passes = ([p._replace(microbatch=order[p.microbatch]) for p in schedule.passes_on(device)] for device in devices)
    return schedule_of(passes, name)
