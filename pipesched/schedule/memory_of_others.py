"""Memory of a device that passes of other devices take and free there: activations that they move to it."""

from __future__ import annotations

from typing import NamedTuple

from pipesched.schedule.timeline import Timeline


class ChangeOfOthers(NamedTuple):
    """A change of a device's memory by a pass of another one (negative: freed), and its tick.

    Memory that is taken counts `later` than all that is freed at the tick: no order is known there. An activation that
    moves here and back at one tick then counts as never there, though a schedule must have room for it.
    """

    tick: int
    amount: int
    later: bool


def changes_of_others(timeline: Timeline, device: int) -> list[ChangeOfOthers]:
    """Return the changes of a device's memory by passes of other devices, in no order."""
    problem, found = timeline.problem, list[ChangeOfOthers]()
    changes = problem.network.changes_of_others(device)
    for p in timeline.schedule.passes() if changes else ():
        if p[:2] in changes:
            at_start, at_end = (problem.scaled(change, p.microbatch) for change in changes[p[:2]])
            found.append(ChangeOfOthers(timeline.start(p), at_start, True))
            found.append(ChangeOfOthers(timeline.end(p), at_end, False))
    return found
