"""The subproblem's data: a problem reduced to the visits of micro-batches to one device."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from formulations.single_device.visits import Later, OneDevice, Trip, Visit
from pipesched.problem.problem import Problem
from solver.bounds.analytic.critical_paths import Paths, chains_on, gate_of

# Memory is counted in integer units of this fraction of the capacity, so that its multipliers can be fine. Activations
# and capacity are both rounded down, which only relaxes the problem.
_PARTS = 2**20


def memory_unit(problem: Problem, device: int) -> int:
    """What memory is counted in, in the memory's integers."""
    return max(1, (problem.room[device] or 0) // _PARTS)


def one_device(problem: Problem, paths: Paths, device: int, whose: int | None) -> OneDevice:
    """The visits to a device between the start and the end of device `whose`, or time 0 and the makespan if None.

    Every chain on the device must pass `whose` before, and no block may be shorter than its passes.
    """
    capacity, unit = problem.room[device], memory_unit(problem, device)
    trips = []
    for stages in chains_on(problem, device):
        gate = gate_of(problem, whose, stages[0])
        assert gate is not None, "every micro-batch passes the device before"
        visits = [*_forwards(problem, paths, stages, gate, unit), *_gradients(problem, paths, stages, gate, unit)]
        trips.append(Trip(len(problem.microbatches_of[gate]), tuple(visits)))
    return OneDevice(None if capacity is None else capacity // unit, tuple(trips), whose in (None, device))


def _forwards(problem: Problem, paths: Paths, stages: Sequence[int], gate: int, unit: int) -> Iterator[Visit]:
    last = stages[-1]
    gradient = paths.head[last] + paths.forward[last] + paths.round_trip[last]
    end = gradient + paths.gradient[last] + paths.tail_until(last, gate)
    starts = [*(paths.head[stage] for stage in stages), gradient]
    for stage, (start, following) in zip(stages, pairwise(starts), strict=True):
        ticks = paths.forward[stage]
        takes = problem.network.held_in_flight[stage] // unit
        away, after = following - start - ticks, end - start - ticks
        yield Visit(start - paths.head[gate], ticks, away, after, takes, gives=0, later=None)


def _gradients(problem: Problem, paths: Paths, stages: Sequence[int], gate: int, unit: int) -> Iterator[Visit]:
    last = stages[-1]
    turn = paths.head[last] + paths.forward[last] + paths.round_trip[last] - paths.head[gate]
    for stage, following in zip(stages[::-1], [*stages[-2::-1], None], strict=True):
        ticks = paths.gradient[stage]
        earliest = turn + paths.gradient[last] + paths.back[last] - paths.back[stage] - ticks
        away = 0 if following is None else paths.back[stage] - paths.back[following] - paths.gradient[following]
        gives, later = _backward(problem, paths, stage, unit)
        yield Visit(earliest, ticks, away, paths.tail_until(stage, gate), 0, gives, later)


def _backward(problem: Problem, paths: Paths, stage: int, unit: int) -> tuple[int, Later | None]:
    """The memory that a gradient frees, and the weight pass that may run later.

    The least of a backward in one go and one in two, where both may be: as fast, it holds as little and waits as long.
    What B may take itself does not count then, for a backward in one go takes nothing.
    """
    held = problem.network.held_in_flight[stage] // unit
    if not problem.splittable:
        return held, None
    rest = (problem.network.held_in_flight[stage] - max(0, problem.network.freed_by_backward[stage])) // unit
    later = Later(paths.rest[stage] - paths.gradient[stage], rest)
    return held - rest, later if any(later) else None
