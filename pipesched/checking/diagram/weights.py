"""Weight passes that run without a break: which may run in front of a step, and which labels replace others.

In front of each step of a device some of its weight passes run, of gradients that it has run before. A forward leaves
no more open than memory has room for; else any number may be open, and for any time. A backward in one go is one whose
weight pass comes right behind its gradient.
"""

from __future__ import annotations

from pipesched.checking.diagram.moves import Labels
from pipesched.checking.diagram.walk import Numbers, Steps
from pipesched.compiled import compiled, inner

# Longer than any weight pass.
_LONG = 2**60


@inner
def choices_in_front(label: Labels, device: int, steps: Steps) -> int:
    """How many ways there are to choose some of what a device has open."""
    found, opened = 1, steps.admitted + 2 * len(steps.room)
    for kind in range(steps.first_kind[device], steps.first_kind[device + 1]):
        found *= label[opened + kind] + 1
    return int(found)


@inner
def run_in_front(label: Labels, choice: int, device: int, ready: int, may: int, steps: Steps) -> bool:
    """Run the choice of that number in front of a step that is ready then. False if it need not be tried.

    No more may stay open than memory allows. If one more would be through when the step is ready, nothing is lost by
    it. If one may run behind the step, which is ready when it would start last in front, nothing is won by it there.
    """
    opened, over = steps.admitted + 2 * len(steps.room), steps.admitted + len(steps.room) + device
    shortest, runs_shortest, stay = _LONG, _LONG, 0  # of what stays open, and of what runs
    for kind in range(steps.first_kind[device], steps.first_kind[device + 1]):
        runs = choice % (label[opened + kind] + 1)
        choice //= label[opened + kind] + 1
        label[over] += runs * steps.kind_ticks[kind]
        label[opened + kind] -= runs
        stay += label[opened + kind]
        if runs > 0:
            runs_shortest = min(runs_shortest, steps.kind_ticks[kind])
        if label[opened + kind] > 0:
            shortest = min(shortest, steps.kind_ticks[kind])
    if may >= 0 and stay > may:
        return False
    through_too = label[over] + shortest <= ready
    behind_it = (may < 0 or stay < may) and label[over] - runs_shortest >= ready
    return not through_too and not behind_it


@inner
def replaces(one: Labels, other: Labels, steps: Steps) -> bool:
    """Whether an order can do all that another can that has come as far."""
    for place in range(steps.admitted + len(steps.room)):
        if one[place] > other[place]:
            return False
    for device in range(len(steps.room)):  # noqa: SIM110 - Numba compiles no generator
        if not _device_replaces(one, other, device, steps):
            return False
    return True


@inner
def _device_replaces(one: Labels, other: Labels, device: int, steps: Steps) -> bool:
    """Whether a device comes to have no more open than another, by the time when that has run all so far.

    Or has no more open, and has run all so far before that can start a step; of each kind that is open it could then
    besides run all that it has less to run, and not be later.
    """
    free, opened = steps.admitted + device, steps.admitted + 2 * len(steps.room)
    over = free + len(steps.room)
    catches_up, no_more, in_time = one[over], True, one[over] <= other[free]
    for kind in range(steps.first_kind[device], steps.first_kind[device + 1]):
        fewer = other[opened + kind] - one[opened + kind]
        if fewer < 0:
            catches_up -= fewer * steps.kind_ticks[kind]
            no_more = False
        elif one[opened + kind] > 0 and one[over] > other[over] + fewer * steps.kind_ticks[kind]:
            in_time = False
    return bool(catches_up <= other[over] or (no_more and in_time))


@compiled
def work_of(labels: Labels, steps: Steps) -> Numbers:
    """The sum of each label's times, with what is open counted as time."""
    opened = steps.admitted + 2 * len(steps.room)
    found: Numbers = labels[:, :opened].sum(axis=1)
    for kind in range(len(steps.kind_ticks)):
        found += labels[:, opened + kind] * steps.kind_ticks[kind]
    return found
