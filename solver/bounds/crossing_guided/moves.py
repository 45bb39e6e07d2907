"""Where the guide says whether a label may end in time: for one label, compiled."""

from __future__ import annotations

from solver.backends.compiled import inner
from solver.bounds.crossing_guided.guide import Guide
from solver.bounds.crossing_steps.steps import Numbers


@inner  # type: ignore[untyped-decorator]
def look_up(guide: Guide, at: Numbers, flying: int, begun: int, found: Numbers) -> bool:
    """Fill in the guide's state after so many steps, and the first micro-batch in flight there and the one behind.

    False where the guide has none: on its stages no order that memory admits comes there and to an end. A state of -1
    where the fewer stages have run all: then a later step of others may have started after the end that is counted.
    """
    key, done, first, behind = 0, (begun - flying) * guide.steps, 0, 0
    for one in range(flying):
        passed = guide.passed[at[one]]
        key, done = key + guide.key[passed], done + passed
        if passed == guide.steps:
            first = one + 1
        if passed > 0:
            behind = one + 1
    found[0], found[1], found[2] = -1, first, behind
    if done == len(guide.since) - 2:
        return True
    low, high = guide.since[done], guide.since[done + 1]
    end = high
    while low < high:
        middle = (low + high) // 2
        if guide.keys[middle] < key:
            low = middle + 1
        else:
            high = middle
    found[0] = low
    return bool(low < end and guide.keys[low] == key)


@inner  # type: ignore[untyped-decorator]
def may_end_below(label: Numbers, at: Numbers, found: Numbers, guide: Guide, most: int, value: int) -> bool:
    """Whether nothing that the guide says of these times is the value or more."""
    row, first, limit = found[0], found[1], value + guide.later
    if row < 0:
        return True
    for one in range(first, found[2]):
        if label[one] - guide.behind[at[one]] + guide.rests[row, one - first] >= limit:
            return False
    for number in range(len(guide.times)):
        if label[most + guide.times[number]] + guide.rests[row, guide.in_flight + number] >= limit:
            return False
    return True
