"""Detection of memory limits that never matter: every device has room for all its micro-batches at once."""

from __future__ import annotations

from fractions import Fraction

from pipesched.problem.features.gather_each_pass import gathering_of
from pipesched.problem.formatting import memory_text
from pipesched.problem.problem import Problem
from pipesched.problem.quantities import DeviceId, MemorySteps, StageId

NEVER_LIMITS = "memory never limits this problem"
# So many times what can ever be held.
_FAR = 10


def why_never_limited(problem: Problem) -> str | None:
    """Return a sentence saying why the memory limit never matters; None if it may matter, or there is no limit."""
    if all(room is None for room in problem.room):
        return None
    needed = [_all_at_once(problem, device) for device in range(problem.devices)]
    if any(room is not None and most > room for room, most in zip(problem.room, needed, strict=True)):
        return None
    most, device = max((most + problem.static[device], device) for device, most in enumerate(needed))
    capacity = problem.pools[device].capacity
    if capacity is None:
        return NEVER_LIMITS
    return (
        f"{NEVER_LIMITS}: with all micro-batches at once device {device} holds {memory_text(problem, most)} and has "
        f"{memory_text(problem, capacity)}{asked(most, capacity)}"
    )


def asked(most: Fraction | MemorySteps, capacity: Fraction | MemorySteps) -> str:
    """Return the end of a sentence: a question about units, or nothing.

    It asks if `capacity` is over 10 times the largest memory use, `most`, which is in the same unit.
    """
    return "; are capacity and activation in one unit?" if capacity > _FAR * most else ""


def _all_at_once(problem: Problem, device: DeviceId) -> MemorySteps:
    """Return an upper bound, in steps of the resolution, of the memory that a device can need.

    It has all its micro-batches at once, with workspace, and all activations that other devices move there.
    """
    total = Fraction(0)
    for (_, stage), change in problem.network.changes_of_others(device).items():
        total += max(0, change.total) * _number(problem, stage)
    for stage in problem.placement.stages_of[device]:
        own, times = problem.stages[stage], _number(problem, stage)
        space = own.workspace
        # A backward may gather its parameters while its forward runs.
        running = space.forward + max(space[1:]) if gathering_of(own) else max(space)
        in_addition = running + sum(own.until_end)
        total += (own.activation + max(0, -own.freed) + in_addition) * times
    return int(total)


def _number(problem: Problem, stage: StageId) -> Fraction | int:
    """Return the sum of the factors of a stage's micro-batches: their number if all are equal."""
    scale, walked = problem.walks.scale, problem.microbatches_of[stage]
    return sum((scale[j] for j in walked), Fraction(0)) if scale else len(walked)
