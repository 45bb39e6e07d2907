"""Which weight passes a device runs before a step, compiled; what a label becomes by these and the step.

A label has when each micro-batch in flight ended its last step, the oldest first; for each device, when it can start
the next step at the earliest, and when it has run all that it has begun; then how many weight passes of each kind wait.
"""

from __future__ import annotations

from solver.backends.compiled import inlined, inner
from solver.diagram.transitions import NEVER


@inlined
def next_choice(ran, label, at, since, until):  # type: ignore[no-untyped-def]
    """Change how many of each kind of a device run to the next choice; False after the last one, which runs all."""
    for kind in range(since, until):
        if ran[kind] < label[at + kind]:
            ran[kind] += 1
            return True
        ran[kind] = 0
    return False


@inner
def is_needed(ran, label, step, ready, pending, steps, weights):  # type: ignore[no-untyped-def]
    """Whether memory allows a choice, and no other is at least as good.

    One is if another weight pass would end before the step is ready, or if one that runs might as well come after the
    step, which is ready before it.
    """
    devices, device = len(steps.room), steps.device[step]
    at, since, until = steps.in_flight + 2 * devices, weights.first[device], weights.first[device + 1]
    ended, waiting = label[at - devices + device], 0
    for kind in range(since, until):
        ended += ran[kind] * weights.ticks[kind]
        waiting += label[at + kind] - ran[kind]
    if 0 <= pending < waiting:
        return False
    for kind in range(since, until):
        ticks = weights.ticks[kind]
        if ran[kind] < label[at + kind] and ended + ticks <= ready:
            return False
        if ran[kind] > 0 and ended - ticks >= ready and not 0 <= pending <= waiting:
            return False
    return True


@inlined
def ready_at(label, one, step, steps, follows):  # type: ignore[no-untyped-def]
    """When a step of a micro-batch can start, but for weight passes."""
    ready = label[steps.in_flight + steps.device[step]]
    return max(ready, label[one] + steps.lag[step]) if follows else ready


@inner
def advance(label, ran, one, step, ready, pending, steps, weights):  # type: ignore[no-untyped-def]
    """Change a label by weight passes and a step behind them.

    A device with no kinds interrupts its weight passes: its work may be done but for so many as memory lets wait.
    """
    devices, most, device = len(steps.room), steps.in_flight, steps.device[step]
    now, at = most + devices + device, most + 2 * devices
    for kind in range(weights.first[device], weights.first[device + 1]):
        label[now] += ran[kind] * weights.ticks[kind]
        label[at + kind] -= ran[kind]
    interrupts = weights.first[device] == weights.first[device + 1]
    if not interrupts:
        start = max(ready, label[now])
    elif pending < 0:
        start = ready
    else:
        start = max(ready, label[now] - pending * steps.longest[device])
    for other in range(devices):
        label[most + other] = max(label[most + other], start)
    label[one] = label[most + device] = start + steps.ticks[step]
    if interrupts:
        label[now] = max(label[now], start) + steps.ticks[step] + steps.later[step]
    else:
        label[now] = label[one]
    if weights.kind[step] >= 0:
        label[at + weights.kind[step]] += 1


@inner
def settle(label, through, at, flying, more, steps, weights):  # type: ignore[no-untyped-def]
    """After a step that leads to the state `at`: a micro-batch that is through leaves, and times are raised.

    To those before which nothing that is left can start anyway. What ends until a device can start its next step runs.
    """
    most, devices = steps.in_flight, len(steps.room)
    if through:
        for one in range(most - 1):
            label[one] = label[one + 1]
        label[most - 1] = 0
    for one in range(flying):
        label[one] = max(label[one], label[most + steps.device[at[one]]] - steps.lag[at[one]])
    for device in range(devices):
        soonest = NEVER
        for one in range(flying):
            if steps.reach[at[one], device] >= 0:
                soonest = min(soonest, label[one] + steps.reach[at[one], device])
        if more:
            soonest = min(soonest, label[most] + steps.reach[0, device])
        if soonest < NEVER:
            label[most + device] = max(label[most + device], soonest)
        _run_in_time(label, device, steps, weights)


@inlined
def _run_in_time(label, device, steps, weights):  # type: ignore[no-untyped-def]
    """Weight passes that end before the device starts a step: all of them if they do, or as many as do of one kind."""
    devices = len(steps.room)
    free, now, at = label[steps.in_flight + device], steps.in_flight + devices + device, steps.in_flight + 2 * devices
    kinds, last, work = 0, 0, 0
    for kind in range(weights.first[device], weights.first[device + 1]):
        if label[at + kind] > 0:
            kinds, last = kinds + 1, kind
            work += label[at + kind] * weights.ticks[kind]
    if label[now] + work <= free:
        label[now] = free
        for kind in range(weights.first[device], weights.first[device + 1]):
            label[at + kind] = 0
    elif kinds == 1 and label[now] < free:
        many = (free - label[now]) // weights.ticks[last]
        label[now] += many * weights.ticks[last]
        label[at + last] -= many


@inlined
def all_done(label, device, steps, weights):  # type: ignore[no-untyped-def]
    """When a device has run all that waits too, with nothing before its next step."""
    devices = len(steps.room)
    ended, at = label[steps.in_flight + devices + device], steps.in_flight + 2 * devices
    for kind in range(weights.first[device], weights.first[device + 1]):
        ended += label[at + kind] * weights.ticks[kind]
    return max(ended, label[steps.in_flight + device])
