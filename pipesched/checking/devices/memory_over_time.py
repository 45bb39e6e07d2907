"""Arguments about a device's memory over time: the need of activations against the capacity.

Each activation is in memory from its forward to its backward, at least for the micro-batch's path to the last stage and
back. All amounts are products of memory and ticks.
"""

from __future__ import annotations

from fractions import Fraction

from pipesched.checking.devices.one_device import OneDevice, most_in
from pipesched.problem.quantities import MemoryTicks, StageId


def before_last_gradient(here: OneDevice) -> Fraction:
    """Return the least ticks from the device's first start to the end of its last gradient.

    Only weight passes follow that. 0 if memory does not limit the device, or some B takes memory there.
    """
    if not _counts(here):
        return Fraction(0)
    later = most_in(here.room, [(ticks * memory, memory, count) for ticks, memory, count in here.weight_passes()])
    return _ticks(here, Fraction(_needed(here) - later))


def before_last_forward(here: OneDevice) -> Fraction:
    """Return the least ticks from the device's first start to the end of its last forward.

    0 if memory does not limit the device, or some B takes memory there.

    Activations in memory at that time are needed later too, so what they may still need is subtracted: for at most the
    capacity, unit by unit. A unit that waits for its gradient may need as much time as its whole activation, less the
    forwards that ran since it was taken (one at a time). A unit that only waits for its weight pass may need the
    remaining part.
    """
    if not _counts(here):
        return Fraction(0)
    assert here.room
    stages = [s for s in here.stages if here.problem.stages[s].activation]
    whole = max((Fraction(area(here, s), here.problem.stages[s].activation) for s in stages), default=Fraction(0))
    after_gradient = max((_after_gradient(here, s) for s in stages), default=Fraction(0))
    pace, room = _pace(here), Fraction(here.room)
    waiting = Fraction(0)
    if whole > after_gradient:
        waiting = min(room, (whole - after_gradient) / pace) if pace else room
    later = waiting * whole - pace * waiting**2 / 2 + (room - waiting) * after_gradient
    return _ticks(here, _needed(here) - later)


def _counts(here: OneDevice) -> bool:
    """Return True if the argument applies to the device: memory is limited, with some room, and B takes no memory."""
    stages = [here.problem.stages[s] for s in here.stages]
    return here.room is not None and here.room > 0 and all(s.weight is None or s.freed >= 0 for s in stages)


def _ticks(here: OneDevice, needed: Fraction) -> Fraction:
    """Return the least ticks in which the device offers `needed` memory times ticks.

    At first only forwards fill the memory, one by one: after t ticks of them at most the largest activation and t /
    pace units are in use, so that some of the capacity stays empty; this counts only if that much time passes at all.
    """
    assert here.room
    largest = max(here.problem.stages[s].activation for s in here.stages)
    pace, empty = _pace(here), max(0, here.room - largest)
    lost = pace * empty * empty / 2
    if needed + lost < here.room * empty * pace:
        lost = Fraction(0)
    return max(Fraction(0), (needed + lost) / here.room)


def _pace(here: OneDevice) -> Fraction:
    """Return the least ticks of forwards for each unit of memory that they take; 0 if none takes any."""
    stages = [(here.times[s].forward, here.problem.stages[s].activation) for s in here.stages]
    return min((Fraction(ticks, memory) for ticks, memory in stages if memory), default=Fraction(0))


def _needed(here: OneDevice) -> MemoryTicks:
    """Return the least memory times ticks of all micro-batches on all stages of the device."""
    return sum(area(here, s) * here.count[s] for s in here.stages)


def area(here: OneDevice, s: StageId) -> MemoryTicks:
    """Return the least memory times ticks of one micro-batch on stage `s`, until its backward has ended.

    A fused backward uses all of the activation until its end. After a split one the weight pass may follow at once, and
    only its part of the memory stays. If there are blocks, a fused backward is assumed to be no longer than B: it then
    needs less memory over time, and may leave less.
    """
    stage, times = here.problem.stages[s], here.times[s]
    before = stage.activation * (times.gradient_begins - times.begins)
    blocks = here.blocks_of_backward(s)
    if stage.weight is None:
        return before + stage.activation * min([stage.fused, *blocks])
    whole = stage.activation * min([stage.fused, *blocks, *([stage.backward] if blocks else [])])
    while_b = stage.activation + max(0, -stage.freed)
    split = while_b * stage.backward + (stage.activation - stage.freed) * stage.weight
    return before + min(split, whole)


def _after_gradient(here: OneDevice, s: StageId) -> Fraction:
    """Return the ticks of the memory-time `area` that may remain after B, for each unit of memory then in use."""
    stage, times = here.problem.stages[s], here.times[s]
    remaining = stage.activation - stage.freed
    if stage.weight is None or not remaining:
        return Fraction(0)
    taken = stage.activation * (times.gradient_begins - times.begins + stage.backward)
    return max(Fraction(0), Fraction(area(here, s) - taken, remaining))
