"""Argument: until its first backward a device runs a whole number of forwards, and waits or delays its predecessor.

Suppose that every device of a chain finished in less than the bound. Each may then idle only so long before its first
backward. Its first gradient reaches it no sooner than those of the devices that the micro-batch passes later allow. If
it may not idle until then, it runs one more forward, and its first backward starts when that has ended. If memory does
not admit that forward, there is no such schedule.
"""

from __future__ import annotations

from fractions import Fraction

from pipesched.checking.devices.one_device import OneDevice, most_in
from pipesched.checking.finding import RefusedEvidenceError
from pipesched.deadline import asking
from pipesched.problem.problem import Problem
from pipesched.problem.quantities import MemorySteps, Ticks
from pipesched.results.evidence import OnDevice

# Where there are more sums of forwards than this, a device counts as able to switch at any time.
_MOST_SUMS = 10_000


def integral_warm_up(problem: Problem, evidence: OnDevice, bound: Fraction | Ticks) -> Fraction | Ticks:
    """Return `bound`, in ticks, if every lower value would make a device's first backward start too late.

    Otherwise, and if the evidence's device does not have stages of exactly one chain, raise `RefusedEvidenceError`.
    """
    last = OneDevice(problem, evidence.device)
    if len(last.chains) != 1:
        raise RefusedEvidenceError(f"device {last.device} does not see exactly one chain of stages")
    chain = next(chain for chain in problem.placement.chains if last.stages[0] in chain)
    place = {stage: at for at, stage in enumerate(chain)}
    on_chain = [
        OneDevice(problem, device, last.times)
        for device in dict.fromkeys(problem.placement.stage_device[s] for s in chain)
    ]
    alone = [here for here in on_chain if len(here.chains) == 1]
    # From where the chain turns back to where it begins: each waits for those before it here.
    alone.sort(key=lambda here: -place[here.stages[0]])
    started: dict[int, int] = {}
    for here in asking(alone):
        ready = here.until_first_backward()
        for inner in (one for one in alone if one.device in started):
            if place[inner.stages[0]] > place[here.stages[0]] and place[inner.stages[-1]] > place[here.stages[-1]]:
                ready = max(ready, started[inner.device] + _apart(here, inner))
        start = _first_backward(here, ready, bound)
        if start is None:
            return bound
        started[here.device] = start
        if here.device == last.device:
            break
    raise RefusedEvidenceError(f"device {last.device} and those it waits for can run their first backwards in time")


def _apart(outer: OneDevice, inner: OneDevice) -> Ticks:
    """Return the least ticks by which the outer device's first backward, after its start, follows the inner one's.

    They are the first forward's path from the outer to the inner device, and the gradient's path back.
    """
    there = inner.times[inner.stages[0]].begins - outer.times[outer.stages[0]].begins
    return there + outer.times[outer.stages[-1]].gradient_begins - inner.times[inner.stages[-1]].gradient_begins


def _first_backward(here: OneDevice, ready: Ticks, bound: Fraction | Ticks) -> Ticks | None:
    """Return the earliest start of a device's first backward, in ticks after the start of its first forward.

    None if the device cannot end before `bound` ticks, or its memory admits no forward. `ready` is the least ticks from
    the first forward until a gradient may arrive.
    """
    needed = here.work + (here.first_start if here.problem.objective.from_zero else 0)
    if here.backward_before_last_forward:
        needed += here.idle_at_last()
    sums = _sums(here)
    if sums is None:  # of any length up to what memory holds
        most = most_in(here.room, _forwards(here))
        start = max(0, ready) if ready <= most or needed + ready - most < bound else None
        return start if needed < bound else None
    if not sums:
        return None  # memory holds no forward, nor what is held besides
    reached = max(total for total in sums if total <= ready)
    if needed + ready - reached < bound:
        return ready
    return min((total for total in sums if total > ready), default=None) if needed < bound else None


def _forwards(here: OneDevice) -> list[tuple[Ticks, MemorySteps, int]]:
    """Return (ticks of its forward, memory of its activation, number of micro-batches) of each stage of the device."""
    stages = here.problem.stages
    return [(stages[s].forward, stages[s].activation, here.count[s]) for s in here.stages]


def _sums(here: OneDevice) -> set[Ticks] | None:
    """Return the total ticks of all sets of forwards whose activations fit into memory together; None if too many."""
    least = {0: 0}  # the memory that a duration takes at least
    for ticks, size, count in _forwards(here):
        most = count if here.room is None or size <= 0 else min(count, here.room // size)
        if len(least) * (most + 1) > _MOST_SUMS:
            return None
        reached = [(total + n * ticks, memory + n * size) for total, memory in least.items() for n in range(most + 1)]
        least = {}
        for total, memory in reached:
            if (here.room is None or memory <= here.room) and memory <= least.get(total, memory):
                least[total] = memory
    return set(least)
