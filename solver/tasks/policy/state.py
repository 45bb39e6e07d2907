"""Data, decisions and progress of dispatching by a policy, as arrays for compiled code."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from pipesched.compiled import compiled
from solver.tasks.serial_kernel import Shop

Array = Any  # numpy arrays, of one dimension unless said

# Classes of tasks.
URGENT, BACKWARD, FORWARD, WEIGHT = range(4)
# Limits of a stream: urgent tasks known before they are ready, and tasks examined to find a short enough one.
MOST_COMING, MOST_ASIDE = 64, 12


class Flow(NamedTuple):
    """Data of a problem for dispatching in addition to `Shop`.

    By job: its `stage`; `opens`, True if it begins its stage's forward; `after_forward`, the index of the group of
    passes after the forward of its stage and micro-batch that it belongs to (-1: none). `parts` is by group the number
    of its jobs, `device` by stage, `stream_device` by stream. A `late` stream (a Boolean by stream), the busiest of its
    device, decides after the others, since it may have to wait for their jobs.
    """

    stage: Array
    opens: Array
    after_forward: Array
    parts: Array
    device: Array
    stream_device: Array
    late: Array


class Decided(NamedTuple):
    """Decisions of a policy, as arrays.

    By job its class (`kind`), its `rank` (all distinct), and the `patience` in steps with which its stream waits for it
    if it is urgent; by stage the `most` micro-batches in flight; by stream the number of startable weight tasks
    (`stock`) from which they go before the backwards or forwards that are not preferred; by memory the `reserve` that
    forwards leave free. `backwards_first`: backwards are preferred to forwards.
    """

    kind: Array
    rank: Array
    patience: Array
    most: Array
    stock: Array
    reserve: Array
    backwards_first: bool


class Progress(NamedTuple):
    """Progress of dispatching.

    By job: the number of predecessors `missing`, and `begin`, its earliest start by those that have begun. `left` is by
    group of jobs, and `parts` by the passes after a forward, the number of jobs that remain; `in_flight` is by stage,
    `level` by memory. `events` is a heap of ends of jobs (n) and of their becoming ready (number of jobs + n) by
    `times`. By stream and class of jobs: `ready`, the heap of startable jobs, of size `open_jobs`. By stream: `coming`,
    the `n_coming` urgent jobs known before they are ready, if it is `busy`, and if it has to decide (`touched`, listed
    in `looked_at`). By device: `blocked`, the `n_blocked` jobs that memory or the limit in flight blocks. `aside` is
    working space. `clock` has the numbers of events, of streams that have to decide and of ended jobs, and the latest
    end.
    """

    missing: Array
    begin: Array
    left: Array
    parts: Array
    in_flight: Array
    level: Array
    times: Array
    events: Array
    ready: Array
    open_jobs: Array
    coming: Array
    n_coming: Array
    blocked: Array
    n_blocked: Array
    busy: Array
    touched: Array
    looked_at: Array
    aside: Array
    clock: Array


# Places of `Progress.clock`.
EVENTS, TOUCHED, DONE, LAST = range(4)


@compiled
def nothing_done(shop: Shop, flow: Flow, decided: Decided) -> Progress:
    """Return the `Progress` before the first job: all counts at zero, all jobs still waiting for their predecessors.

    `shop` and `flow` have the data of the jobs; of `decided` the classes of jobs count, which size the heaps.
    """
    n_jobs, streams, memories = shop.steps.shape[0], flow.stream_device.shape[0], shop.room.shape[0]
    devices = flow.stream_device.max() + 1
    counts = np.zeros((streams, 4), np.int64)
    for n in range(n_jobs):
        counts[shop.stream[n], decided.kind[n]] += 1
    return Progress(
        shop.needs.copy(),
        np.zeros(n_jobs, np.int64),
        shop.size.copy(),
        flow.parts.copy(),
        np.zeros(flow.device.shape[0], np.int64),
        np.zeros(memories, np.int64),
        np.zeros(2 * n_jobs, np.int64),
        np.zeros(2 * n_jobs + 2, np.int64),
        np.zeros((streams, 4, counts.max() + 2), np.int64),
        np.zeros((streams, 4), np.int64),
        np.zeros((streams, MOST_COMING), np.int64),
        np.zeros(streams, np.int64),
        np.zeros((devices, n_jobs + 1), np.int64),
        np.zeros(devices, np.int64),
        np.zeros(streams, np.bool_),
        np.zeros(streams, np.bool_),
        np.zeros(streams, np.int64),
        np.zeros(MOST_ASIDE, np.int64),
        np.zeros(4, np.int64),
    )
