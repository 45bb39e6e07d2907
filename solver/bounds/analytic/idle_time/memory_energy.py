"""Memory times time that a device's activations occupy, and that its memory has (energetic reasoning).

An activation occupies memory from forward to backward.
"""

from __future__ import annotations

from fractions import Fraction

from pipesched.problem.passes import BW, B, W
from pipesched.problem.quantities import MemorySteps, MemoryTicks, StageId
from solver.bounds.analytic.critical_paths import Paths


def area(paths: Paths, stage: StageId) -> MemoryTicks:
    """Return the least memory times ticks that one micro-batch occupies for a stage.

    It does from its forward to its backward's end.
    """
    view = paths.view
    activation, freed = view.memory_in_flight[stage], view.freed_by_backward(stage)
    waiting = activation * (paths.forward[stage] + paths.round_trip[stage])
    if not view.splits:
        return waiting + activation * paths.gradient[stage]
    b, w, whole = (view.ticks[kind, stage] for kind in (B, W, BW))
    split = (activation - min(0, freed)) * b + (activation - freed) * w
    whole = min(whole, paths.gradient[stage]) if view.blocks else whole
    return waiting + min(split, activation * whole)


def unused_at_first(
    paths: Paths, stages: list[StageId], capacity: MemorySteps, taken: MemoryTicks | Fraction
) -> Fraction:
    """Return the least memory times ticks that a device cannot use at first, while forwards fill its memory one by one.

    Time counts from the start of its first forward. `stages` are the device's stages, `capacity` is its memory for
    activations in steps, `taken` the memory times ticks that its passes use in all. 0 is returned if they could have
    used so much before the memory is full.
    """
    each = _least_ticks_each(paths, stages)
    # After t ticks of forwards at most t / each units of memory and one activation more are in use.
    empty = max(0, capacity - max(paths.view.memory_in_flight[s] for s in stages))
    unused = empty * empty * each / 2
    return unused if taken + unused >= capacity * empty * each else Fraction(0)


def area_left_at_last_forward(paths: Paths, stages: list[StageId], capacity: MemorySteps) -> Fraction:
    """Return the most memory times ticks that activations in memory at a device's last forward's end can still need.

    `stages` are the device's stages. Only where no B takes more memory than it frees (`freed`). All forwards are over
    then, so each micro-batch is in one of three states; `area` is the least memory times ticks that it takes in all.

    1. None of its memory is in use any more: all of `area` was taken.
    2. Only W is still to end, and `activation - freed` is in use. What remains is `area` less what was taken until B
       ended: for each unit of memory in use, at most W's duration. Nothing remains where B freed all.
    3. The gradient has not ended, and the whole activation is in use. What remains is `area` less the activation times
       the time since its forward began. Forwards run one at a time, and take at least `each` ticks for each unit of
       activation. So of the units in use, unit x as counted back from the last forward has been in use for each * x
       ticks, and at most area / activation - each * x remains of it.

    At most `capacity` is in use. Units of state 3 count as long as more may remain of them than of units of state 2.
    """
    activation = paths.view.memory_in_flight
    with_activation = [s for s in stages if activation[s]]
    if not with_activation:
        return Fraction(0)
    each = _least_ticks_each(paths, stages)
    longest = max(Fraction(area(paths, s), activation[s]) for s in with_activation)
    waiting = max(_left_for_weight(paths, s) for s in with_activation)
    falling = Fraction(0)
    if longest > waiting:
        falling = min(Fraction(capacity), (longest - waiting) / each) if each else Fraction(capacity)
    return falling * longest - each * falling * falling / 2 + (capacity - falling) * waiting


def _left_for_weight(paths: Paths, stage: StageId) -> Fraction:
    """Return the most ticks of `area` left when B ends.

    That is memory times ticks, divided by the memory in use from then on. 0 where backwards are never split, or where B
    frees all of the activation.
    """
    view = paths.view
    activation, memory_until_weight = view.memory_in_flight[stage], view.memory_until_weight[stage]
    if not view.splits or memory_until_weight == 0:
        return Fraction(0)
    until_then = paths.forward[stage] + paths.round_trip[stage] + view.ticks[B, stage]
    return max(Fraction(0), Fraction(area(paths, stage) - activation * until_then, memory_until_weight))


def _least_ticks_each(paths: Paths, stages: list[StageId]) -> Fraction:
    """Return the least ticks of forward that it takes to fill a unit of memory.

    0 if no stage of a device takes memory.
    """
    activation = paths.view.memory_in_flight
    return min((Fraction(paths.forward[s], activation[s]) for s in stages if activation[s]), default=Fraction(0))
