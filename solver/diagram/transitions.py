"""What a step or a block makes of a label, compiled without counts of references, since it is called for each label.

A label says how early a state can be reached: when the last step of each micro-batch in flight ended, the oldest first,
then for each device when its next step can start at the earliest, and when it would be free with all weight passes
done. Steps are taken in the order of their starts: so no device starts anything before the last step did. A block
starts when both of its passes may, and both end with it; its backward leaves no weight pass.
"""

from __future__ import annotations

from pipesched.compiled import inlined, inner
from solver.diagram.steps import NONE, Numbers, Steps

NEVER = 1 << 62


@inner
def take_move(label: Numbers, step: int, gradient: int, ran: Numbers, pending: int, steps: Steps) -> None:
    """Change a label by a step, or by a block of it with a gradient; the micro-batch that is through leaves."""
    most, device, one = steps.in_flight, steps.device[step], ran[step]
    free, whole = most + device, most + len(steps.room) + device
    start = label[free]
    if step > 0:
        start = max(start, label[one] + steps.lag[step])
    if gradient != NONE:
        start = max(start, label[ran[gradient]] + steps.lag[gradient])
    if pending >= 0:
        start = max(start, label[whole] - pending * steps.longest[device])
    for time in range(most, len(label)):
        label[time] = max(label[time], start)
    if gradient == NONE:
        label[free] = label[one] = start + steps.ticks[step]
        label[whole] += steps.ticks[step] + steps.later[step]
    else:
        ticks = steps.blocks[step, gradient]
        label[free] = label[one] = label[ran[gradient]] = start + ticks
        label[whole] += ticks
    if max(step, gradient) == len(ran) - 1:
        for time in range(most - 1):
            label[time] = label[time + 1]
        label[most - 1] = 0


@inner
def ways_to_devices(ways: Numbers, at: Numbers, flying: int, steps: Steps) -> None:
    """Fill in for each device how long each micro-batch in flight takes to it at least; much where it does not come."""
    for device in range(len(ways)):
        for one in range(flying):
            reach = steps.reach[at[one], device]
            ways[device, one] = reach if reach >= 0 else NEVER // 2


@inlined
def raise_times(label: Numbers, at: Numbers, flying: int, more: bool, steps: Steps, ways: Numbers) -> None:
    """Raise the times of a label to those before which nothing that is left can start anyway.

    Labels that differ only in what decides nothing become equal, and so fewer have to be merged.
    """
    devices, most = len(ways), len(label) - 2 * len(ways)
    for one in range(flying):
        label[one] = max(label[one], label[most + steps.device[at[one]]] - steps.lag[at[one]])
    for device in range(devices):
        soonest = NEVER // 2
        if more and steps.reach[0, device] >= 0:
            soonest = label[most + steps.device[0]] - steps.lag[0] + steps.reach[0, device]
        for one in range(flying):
            soonest = min(soonest, label[one] + ways[device, one])
        if soonest < NEVER // 2:
            label[most + device] = max(label[most + device], soonest)
        label[most + devices + device] = max(label[most + devices + device], label[most + device])


@inlined
def end_of(label: Numbers, steps: Steps) -> int:
    """When all that counts has ended."""
    ends = steps.in_flight + len(steps.room)
    end: int = label[ends]
    if steps.makespan:
        for device in range(1, len(steps.room)):
            end = max(end, label[ends + device])
    return end
