"""End time of each device under 1F1B and interleaved 1F1B, for several plans at once, without a timeline.

Both orders are recurrences with a memory of one step: the start of a device's next pass depends on when the device and
its neighbours ended the step before. Once one step shifts all these times by the same amount, every later step does
until forwards run out, and these steps are skipped. The result is exact, in time that does not grow with the
micro-batches.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pipesched.problem.quantities import Ticks

# Whole numbers, of ticks or steps of memory: 64-bit integers, or Python's integers as objects if sums may be larger.
WholeArray = np.ndarray[Any, Any]


def one_f_one_b_ends(
    forward: WholeArray, backward: WholeArray, lag: Ticks, gradient_lag: WholeArray, microbatches: int
) -> WholeArray:
    """Return the end of each device's last backward under 1F1B, in ticks, shape (plans, devices).

    `forward[r, i]` and `backward[r, i]` are the durations on device i in plan r. An activation takes `lag` to the next
    device, a gradient `gradient_lag[r, i]` to device i. In step k device i of p runs forward k + p - 1 - i and then
    backward k, where these exist.
    """
    devices = forward.shape[1]
    warm_up = np.arange(devices - 1, -1, -1)
    sent = np.zeros_like(backward)  # by device i to the one before it
    sent[:, 1:] = gradient_lag[:, :-1]
    along = np.cumsum(backward + sent, axis=1, dtype=forward.dtype)
    free, ends = np.zeros_like(forward), np.zeros_like(forward)
    known = _Steps(1, 0, microbatches - devices)
    k = 1 - devices
    while k < microbatches:
        running = (k + warm_up >= 0) & (k + warm_up < microbatches)
        arrival = np.zeros_like(ends)
        arrival[:, 1:] = ends[:, :-1] + lag
        ends = np.where(running, np.maximum(free, arrival) + forward, ends)
        free = np.where(running, ends, free)
        if k >= 0:
            ready = np.maximum.accumulate((free + along)[:, ::-1], axis=1)[:, ::-1]
            free = ready - along + backward
        skipped, shift = known.skip(k, free, ends)
        free, ends, k = free + shift, ends + shift, k + skipped + 1
    return free


def interleaved_ends(
    forward: WholeArray, backward: WholeArray, lag: Ticks, gradient_lag: WholeArray, microbatches: int
) -> WholeArray:
    """Return the end of each device's last backward under interleaved 1F1B, in ticks, shape (plans, devices).

    `forward[r, i, c]` and `backward[r, i, c]` are the durations of chunk c of v on device i of p in plan r. An
    activation takes `lag` to the next device, a gradient `gradient_lag[r, i, c]` to that chunk. Needs p >= 2, which
    divides the number of micro-batches. In step t device i runs its forward number t + p - 1 - i + (v - 1) p and then
    its backward number t - (p - 1 - i), where these exist; both wait only for passes of the step before on other
    devices.
    """
    rows, devices, chunks = forward.shape
    group, total = devices * chunks, microbatches * chunks
    devices_after = np.arange(devices - 1, -1, -1)
    first = devices_after + (chunks - 1) * devices
    before, after = np.roll(np.arange(devices), 1), np.roll(np.arange(devices), -1)
    steps = np.arange(group)[:, None]
    which = (steps + first) // devices % chunks
    back = chunks - 1 - (steps - devices_after) // devices % chunks
    # By step within a group of micro-batches: [step, plan, device].
    forwards = np.moveaxis(forward[:, np.arange(devices), which], 1, 0)
    backwards = np.moveaxis(backward[:, np.arange(devices), back], 1, 0)
    lags = np.moveaxis(gradient_lag[:, np.arange(devices), back], 1, 0)
    free, ends, given = (np.zeros((rows, devices), forward.dtype) for _ in range(3))
    known = _Steps(group, devices - 1, total - 1 - int(first[0]))
    t = -int(first[0])
    while t < total + devices - 1:
        at = t % group
        number, returned = t + first, t - devices_after
        running = (number >= 0) & (number < total)
        arrival = ends[:, before] + lag
        if which[at, 0] == 0:
            arrival[:, 0] = 0
        ends = np.where(running, np.maximum(free, arrival) + forwards[at], ends)
        free = np.where(running, ends, free)
        if t >= 0:
            arrival = given[:, after] + lags[at]
            if back[at, -1] == chunks - 1:
                arrival[:, -1] = 0
            running = (returned >= 0) & (returned < total)
            given = np.where(running, np.maximum(free, arrival) + backwards[at], given)
            free = np.where(running, given, free)
        skipped, shift = known.skip(t, free, ends, given)
        free, ends, given, t = free + shift, ends + shift, given + shift, t + skipped + 1
    return free


class _Steps:
    """Detect the step from which on all times only shift by a constant, so that steps can be skipped.

    From step `begin` to `end` all devices run both passes. States are compared `every` steps apart, and also `every`
    times the number of devices apart.
    """

    def __init__(self, every: int, begin: int, end: int) -> None:
        self._every, self._begin, self._end = every, begin, end
        self._last: WholeArray | None = None
        self._marked: tuple[int, WholeArray] | None = None

    def skip(self, step: int, *columns: WholeArray) -> tuple[int, WholeArray]:
        """Return (steps, ticks): how many steps may be skipped after `step`, and the shift of each plan's times.

        `columns` are times at that step, shape (plans, devices); the shift has shape (plans, 1). Both are 0 while the
        shifts are not yet constant.
        """
        nothing = 0, np.zeros((len(columns[0]), 1), columns[0].dtype)
        if step < self._begin or step > self._end or (step - self._begin) % self._every:
            return nothing
        state, devices = np.concatenate(columns, axis=1), columns[0].shape[1]
        before = [] if self._last is None else [(step - self._every, self._last)]
        if self._marked is not None and step - self._marked[0] == self._every * devices:
            before.append(self._marked)
        if self._marked is None or step - self._marked[0] >= self._every * devices:
            self._marked = step, state
        self._last = state
        for at, earlier in before:
            length = step - at
            times = (self._end - step) // length
            shift = (state - earlier)[:, :1]
            if times > 0 and ((state - earlier) == shift).all():
                self._end = -1  # steps are skipped only once
                return times * length, times * shift
        return nothing
