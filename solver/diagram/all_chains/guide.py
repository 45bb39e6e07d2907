"""Labels of several devices that what follows on one of them leaves out.

Whatever runs on several devices runs on each of them: so a label and what is left are ones of that device alone, where
the others are delays. There a micro-batch in flight that has gone on to other devices counts as one that left as much
later as the way from there is shorter.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pipesched.compiled import compiled
from solver.diagram.all_chains.follow import Follows
from solver.diagram.all_chains.steps import NONE, ChainSteps
from solver.diagram.layers import Labels
from solver.diagram.steps import Numbers

Flags = NDArray[np.bool_]


class Guide(NamedTuple):
    """Where labels of several devices say what one of them has to know, its number, and what follows there.

    By step of the several devices: what it adds to the `key` of the device's own state; `column` is where the times of
    micro-batches that did it last begin in an own label, -1 where none of them are between steps of the device; `done`
    is the chain's last step on the device, and `shift` what is added to their times. `size` is that of an own row.
    """

    device: int
    key: Numbers
    column: Numbers
    done: Numbers
    shift: Numbers
    size: int
    follows: Follows


def guide_of(steps: ChainSteps, own: ChainSteps, device: int, follows: Follows) -> Guide:
    """Of the device with this number among those of the steps, with the steps of it alone."""
    count = len(steps.ticks)
    here = np.flatnonzero(steps.device == device)
    key, column = np.zeros(count, np.int64), np.full(count, NONE, np.int64)
    done, shift = np.zeros(count, np.int64), np.zeros(count, np.int64)
    key[here] = own.place
    number = {int(step): n for n, step in enumerate(here)}
    for step in range(count):
        chain = [one for one in number if steps.last[one] == steps.last[step]]
        next_ones = [one for one in chain if one > step]
        if not next_ones or chain[0] > step:
            continue
        column[step] = own.slot[number[chain[0]]]
        done[step] = chain[-1]
        shift[step] = steps.reach[step + 1, device] - own.lag[number[next_ones[0]]]
    return Guide(device, key, column, done, shift, own.slots + 3, follows)


def in_time(found: Labels, steps: ChainSteps, guides: tuple[Guide, ...], value: int) -> Labels:
    """Those labels which something may follow on each of these devices that ends below the value."""
    keys, labels = found
    for guide in guides:
        stays = may_follow(keys, labels, steps, guide, value)
        keys, labels = keys[stays], labels[stays]
    return Labels(keys, labels)


@compiled
def may_follow(keys: Numbers, labels: Numbers, steps: ChainSteps, guide: Guide, value: int) -> Flags:
    """Whether each label is followed by something that ends below the value, as far as one device knows."""
    base, follows = steps.microbatches.max() + 1, guide.follows
    run, own = np.zeros(len(steps.ticks), np.int64), np.zeros(guide.size, np.int64)
    found, state, last = np.zeros(len(keys), np.bool_), np.int64(-1), np.int64(-1)
    for number in range(len(keys)):
        if keys[number] != last:
            last, here, left = keys[number], np.int64(0), keys[number]
            for step in range(len(run)):
                run[step] = left % base
                left //= base
                here += run[step] * guide.key[step]
            state = np.searchsorted(follows.keys, here)
            if state == len(follows.keys) or follows.keys[state] != here:
                state = np.int64(-1)
        if state < 0:
            continue
        _own_label(own, labels[number], run, steps, guide)
        for row in follows.rows[state, : follows.many[state]]:
            late = False
            for entry in range(len(own)):
                if own[entry] + row[entry] >= value:
                    late = True
                    break
            if not late:
                found[number] = True
                break
    return found


@compiled
def _own_label(own: Numbers, label: Numbers, run: Numbers, steps: ChainSteps, guide: Guide) -> None:
    """The label of one device; 0 where it says nothing."""
    devices, slots = len(steps.room), steps.slots
    own[:] = 0
    own[guide.size - 1] = steps.origin
    for step in range(len(run)):
        if guide.column[step] == NONE:
            continue
        for one in range(run[step + 1], run[step]):
            time = label[steps.slot[step] + one - run[steps.last[step]]]
            own[guide.column[step] + one - run[guide.done[step]]] = time + guide.shift[step]
    own[guide.size - 3] = label[slots + guide.device]
    own[guide.size - 2] = label[slots + devices + guide.device]
