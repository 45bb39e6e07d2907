"""What a device does between its steps: which weight passes run in front of one, and which have run until one comes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numba import njit

from pipesched.checking.crossing_steps.argument import Numbers, Way
from pipesched.checking.crossing_steps.orders import wait_for_each_other


class Open(NamedTuple):
    """Kinds of weight passes, by device and length: `ticks` of each, those of device d from `first[d]` on.

    `kind[n]` is that which step n leaves open, -1 for none. A device with none may interrupt its weight passes.
    """

    kind: Numbers
    ticks: Numbers
    first: Numbers


def open_of(way: Way, whole: Sequence[int] | None = None) -> Open:
    """Backwards of a device whose rests are equally long leave the same open; of these devices, or of all."""
    rows = np.stack((way.device, way.after), axis=1)
    uninterrupted = np.ones(len(rows), np.bool_) if whole is None else np.isin(way.device, list(whole))
    known = np.unique(rows[(way.after > 0) & uninterrupted], axis=0)
    kind = [next((k for k, one in enumerate(known) if (one == row).all()), -1) for row in rows]
    first = [int((known[:, 0] < one).sum()) for one in range(len(way.room) + 1)]
    return Open(np.array(kind, np.int64), np.ascontiguousarray(known[:, 1]), np.array(first, np.int64))


@njit(cache=True, nogil=True)
def ready_for(times: Numbers, n: int, which: int, way: Way) -> int:
    """When step n of a micro-batch could start if no weight pass were in front of it."""
    device_is = times[way.admitted + way.device[n]]
    return int(device_is if n == 0 else max(device_is, times[which] + way.before[n]))


@njit(cache=True, nogil=True)
def in_front(
    chosen: Numbers, choice: int, times: Numbers, n: int, ready: int, may: int, way: Way, opened: Open
) -> bool:
    """Fill in the choice of that number: how many of each kind run in front of a step. False if it need not be tried.

    No more may stay open than memory allows. If one more would be through when the step is ready, nothing is lost by
    it. If one may run behind the step, which is ready when it would start last in front, nothing is won by it there.
    """
    one, places = way.device[n], way.admitted + 2 * len(way.room)
    over, stay, left = times[places - len(way.room) + one], 0, choice
    for kind in range(opened.first[one], opened.first[one + 1]):
        chosen[kind] = left % (times[places + kind] + 1)
        left //= times[places + kind] + 1
        over += chosen[kind] * opened.ticks[kind]
        stay += times[places + kind] - chosen[kind]
    if may >= 0 and stay > may:
        return False
    for kind in range(opened.first[one], opened.first[one + 1]):
        through_too = chosen[kind] < times[places + kind] and over + opened.ticks[kind] <= ready
        behind_it = chosen[kind] > 0 and over - opened.ticks[kind] >= ready and (may < 0 or stay < may)
        if through_too or behind_it:
            return False
    return True


@njit(cache=True, nogil=True)
def come_to(times: Numbers, comes: Numbers, more: bool, way: Way, opened: Open) -> None:
    """Change times to the latest with which no step that is left runs later, and run what ends until such a step."""
    wait_for_each_other(times, comes, more, way)
    for one in range(len(way.room)):
        _until(times, one, times[way.admitted + one], way, opened)


@njit(cache=True, nogil=True)
def _until(times: Numbers, one: int, until: int, way: Way, opened: Open) -> None:
    """Run what is open until then, if all ends, or as much as does of one length; with nothing open, time passes."""
    over, places, kinds, only = way.admitted + len(way.room) + one, way.admitted + 2 * len(way.room), 0, 0
    for kind in range(opened.first[one], opened.first[one + 1]):
        if times[places + kind] > 0:
            kinds, only = kinds + 1, kind
    if all_over(times, one, way, opened) <= until:
        times[over] = until
        for kind in range(opened.first[one], opened.first[one + 1]):
            times[places + kind] = 0
    elif kinds == 1:
        while times[over] + opened.ticks[only] <= until:
            times[over] += opened.ticks[only]
            times[places + only] -= 1


@njit(cache=True, nogil=True)
def all_over(times: Numbers, one: int, way: Way, opened: Open) -> int:
    """When a device that starts no step would have run all that is open; no sooner than it could start one."""
    over, places = times[way.admitted + len(way.room) + one], way.admitted + 2 * len(way.room)
    for kind in range(opened.first[one], opened.first[one + 1]):
        over += times[places + kind] * opened.ticks[kind]
    return int(max(over, times[way.admitted + one]))
