"""Orders in which unequal micro-batches enter a pipeline, and schedules renumbered to such an order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pipesched.errors import DoesNotApply
from pipesched.problem.problem import Problem
from pipesched.problem.quantities import MicrobatchId
from pipesched.schedule.schedule import Schedule, schedule_of


def small_at_both_ends(problem: Problem) -> tuple[MicrobatchId, ...]:
    """Return the numbers of micro-batches in an order with the smallest first and last and the largest in the middle.

    As in verl's `rearrange_micro_batches`: sorted by work, largest first, every other one in reverse, then the others.
    The problem must have unequal micro-batches.
    """
    falling = largest_first(problem)
    return (*falling[::2][::-1], *falling[1::2])


def largest_first(problem: Problem) -> tuple[MicrobatchId, ...]:
    """Return the numbers of micro-batches sorted by their work, the largest first, equal ones by number.

    The problem must have unequal micro-batches.
    """
    scale = problem.walks.scale
    return tuple(sorted(range(problem.microbatches), key=lambda j: (-scale[j], j)))


def orders(problem: Problem) -> Iterator[tuple[MicrobatchId, ...]]:
    """Yield the orders worth trying, as numbers of micro-batches: small at both ends, largest first, smallest first.

    The problem must have unequal micro-batches.
    """
    yield small_at_both_ends(problem)
    yield largest_first(problem)
    yield largest_first(problem)[::-1]


def any_order(problem: Problem) -> None:
    """Raise `DoesNotApply` for problems whose micro-batches are equal, traverse several chains, or keep their order."""
    if not problem.walks.scale:
        raise DoesNotApply("needs unequal micro-batches: give microbatch_scale")
    if problem.walks.queues:
        raise DoesNotApply("needs unequal micro-batches in any order: microbatch_order: free")
    if len(problem.placement.chains) > 1:
        raise DoesNotApply(f"needs micro-batches that all walk one chain; the placement is {problem.placement.name}")


def renumbered(schedule: Schedule, order: Sequence[MicrobatchId], name: str) -> Schedule:
    """Return the schedule with micro-batch `order[j]` in place of micro-batch j in every pass, under a new name.

    Only the order of passes stays: overlapped slots become single passes; orders of tasks and waits are left out.
    """
    devices = range(schedule.columns.devices)
    passes = ([p._replace(microbatch=order[p.microbatch]) for p in schedule.passes_on(device)] for device in devices)
    return schedule_of(passes, name)
