"""Transition of a label by a step or a block, compiled without reference counts, since it is called for each label.

A label gives how early a state can be reached: by chain the end of the last step of each micro-batch in flight, oldest
first, then for each device the earliest start of its next step, and its free time with all weight passes done. Steps
are taken in the order of their starts: so no device starts anything before the last step did. A block starts when both
of its passes may, and both end with it; its backward leaves no weight pass.
"""

from __future__ import annotations

from pipesched.compiled import inlined, inner
from solver.diagram.steps import NEVER, NONE, Numbers, Steps


@inner
def take_move(
    label: Numbers, step: int, gradient: int, ran: Numbers, slack: int, before_all: bool, steps: Steps
) -> int:
    """Apply a step, or a block of it with a gradient, to a label in place.

    Return the end of a chain's last step, else 0. That end, in ticks, includes the least time after the step
    (`steps.tail`). `gradient` is -1 without a block, `ran` has by step the micro-batches that have done it before,
    `slack` are the ticks of weight passes that may be pending at the start (-1 without limit). `before_all`: no pass of
    the device whose time counts has run; passes on other devices may then have ended long ago, and leave the times of
    devices as they are.
    """
    device = steps.device[step]
    free, whole = steps.slots + device, steps.slots + len(steps.room) + device
    start, end = max(label[free], _arrival(label, step, ran, steps)), steps.past
    if gradient != NONE:
        start = max(start, _arrival(label, gradient, ran, steps))
    if slack >= 0:
        start = max(start, label[whole] - slack)
    if not before_all or device == steps.owner:
        if steps.owner != NONE:
            start = max(start, 0)
        for time in range(steps.slots, len(label)):
            label[time] = max(label[time], start)
        work = steps.ticks[step] if gradient == NONE else steps.blocks[step, gradient]
        end = start + work
        label[free] = end
        label[whole] += work + (steps.later[step] if gradient == NONE else 0)
    return max(note_end(label, step, ran, end, steps), note_end(label, gradient, ran, end, steps))


@inlined
def _arrival(label: Numbers, step: int, ran: Numbers, steps: Steps) -> int:
    """Return the tick at which the next micro-batch has arrived at a step; its device may still be busy then.

    `ran` has by step the micro-batches that have done it; a micro-batch that begins a chain arrives from `steps.past`
    on.
    """
    if step == steps.first[step]:
        return steps.past + int(steps.lag[step])
    return int(label[steps.slot[step] + ran[step] - ran[steps.last[step]]] + steps.lag[step])


@inlined
def note_end(label: Numbers, step: int, ran: Numbers, end: int, steps: Steps) -> int:
    """Store the end of a micro-batch's step, in ticks, in the label.

    After its chain's last step drop its time from the label. Returns `end` plus the least time after the step (`tail`)
    if it is its chain's last one, else 0; 0 and no change if `step` is -1. `ran` has by step the micro-batches that had
    done it before.
    """
    if step == NONE:
        return 0
    last, slot = steps.last[step], steps.slot[step]
    if step != last:
        label[slot + ran[step] - ran[last]] = end
        return 0
    until = slot + steps.in_flight[step] - 1
    for time in range(slot, until):
        label[time] = label[time + 1]
    label[until] = 0
    return int(end + steps.tail[step])


@inlined
def raise_times(label: Numbers, waiting: Numbers, found: int, steps: Steps) -> None:
    """Raise, in place, the times of a label to those before which nothing that is left can start anyway.

    Labels that differ only in times that decide nothing become equal, so fewer have to be merged. `waiting` has in its
    first `found` rows the steps that are left, as filled by `moves.fill_waiting`.
    """
    slots, devices = steps.slots, len(steps.room)
    for entry in range(found):
        step = waiting[entry, 0]
        idle = label[slots + steps.device[step]] - steps.lag[step]
        for time in range(waiting[entry, 1], waiting[entry, 2]):
            label[time] = max(label[time], idle)
    for device in range(devices):
        soonest = NEVER // 2
        for entry in range(found):
            step = waiting[entry, 0]
            if step == steps.first[step]:
                arrival = max(steps.past, label[slots + steps.device[step]] - steps.lag[step])
            else:
                arrival = label[waiting[entry, 1]]
            soonest = min(soonest, arrival + steps.reach[step, device])
        if soonest < NEVER // 4:
            label[slots + device] = max(label[slots + device], soonest)
        label[slots + devices + device] = max(label[slots + devices + device], label[slots + device])


@inlined
def end_of(label: Numbers, back: int, steps: Steps) -> int:
    """Return the end of the objective in ticks, for a label after the last move of an order.

    It is the latest time at which a device that counts has done all its work, or `back`, the end of the last chain, if
    that is later.
    """
    for device in range(len(steps.room)):
        if steps.counts[device]:
            back = max(back, label[steps.slots + len(steps.room) + device])
    return back
