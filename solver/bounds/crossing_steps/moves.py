"""What a step makes of a label, compiled without counts of references, since it is called for each label."""

from __future__ import annotations

from solver.backends.compiled import inner
from solver.bounds.crossing_steps.steps import Numbers, Steps

NEVER = 1 << 62


@inner  # type: ignore[untyped-decorator]
def positions_of(key: int, steps: Steps, at: Numbers) -> int:
    """Fill in how many steps each micro-batch in flight has done, the oldest first; how many there are."""
    base = steps.in_flight + 1
    left = key
    for place in range(len(at)):
        at[place] = 0
    for _ in range(1, len(steps.ticks)):
        for place in range(left % base):
            at[place] += 1
        left //= base
    return key % base


@inner  # type: ignore[untyped-decorator]
def waiting_at(steps: Steps, at: Numbers, flying: int, one: int, step: int) -> int:
    """How many weight passes of the device may wait when a step starts: -1 where memory does not say.

    -2 where memory has no place for the step, or would have none for the forwards of an older micro-batch after it.
    """
    device, takes = steps.device[step], steps.takes[step]
    if takes <= 0 or steps.room[device] < 0:
        return -1
    held, younger, oldest = 0, 0, -1
    for other in range(flying):
        if oldest < 0 and at[other] <= steps.forward[device]:
            oldest = other
        own = 0
        for n in range(at[other]):
            if steps.device[n] == device:
                own += steps.takes[n]
        held += own
        if oldest >= 0 and other > oldest:
            younger += own
    room = steps.room[device] - takes
    if held > room or (0 <= oldest < one and younger + steps.whole[device] > room):
        return -2
    return (room - held) // steps.waiting[device] if steps.waiting[device] > 0 else -1


@inner  # type: ignore[untyped-decorator]
def take_step(label: Numbers, one: int, step: int, pending: int, steps: Steps, follows: bool) -> None:
    """Change a label by a step of micro-batch `one`."""
    most, devices = steps.in_flight, len(steps.room)
    free, whole = most + steps.device[step], most + devices + steps.device[step]
    start = label[free]
    if follows:
        start = max(start, label[one] + steps.lag[step])
    if pending >= 0:
        start = max(start, label[whole] - pending * steps.longest[steps.device[step]])
    for time in range(most, len(label)):
        label[time] = max(label[time], start)
    label[free] = label[one] = start + steps.ticks[step]
    label[whole] += steps.ticks[step] + steps.later[step]


@inner  # type: ignore[untyped-decorator]
def raise_times(label: Numbers, at: Numbers, flying: int, more: bool, steps: Steps) -> None:
    """Raise the times of a label to those before which nothing that is left can start anyway.

    Labels that differ only in what decides nothing become equal, and so fewer have to be merged.
    """
    devices, most = len(steps.room), steps.in_flight
    for one in range(flying):
        label[one] = max(label[one], label[most + steps.device[at[one]]] - steps.lag[at[one]])
    for device in range(devices):
        soonest = NEVER
        for one in range(flying):
            reach = steps.reach[at[one], device]
            if reach >= 0:
                soonest = min(soonest, label[one] + reach)
        if more:
            soonest = min(soonest, label[most] + steps.reach[0, device])
        if soonest < NEVER:
            label[most + device] = max(label[most + device], soonest)
        label[most + devices + device] = max(label[most + devices + device], label[most + device])
