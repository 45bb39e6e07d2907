"""Dispatching of tasks by a policy, compiled: a free stream starts the best ready task.

Urgent tasks are first, then classes in order, in each the lowest rank. No task starts that would still run when an
urgent task worth waiting for becomes ready. A forward starts on a stage only while few enough micro-batches are in
flight there; tasks that take memory wait until it is available.
"""

from __future__ import annotations

import numpy as np

from pipesched.compiled import compiled, inlined, inner
from solver.tasks.policy.state import (
    BACKWARD,
    DONE,
    EVENTS,
    FORWARD,
    LAST,
    MOST_ASIDE,
    MOST_COMING,
    TOUCHED,
    URGENT,
    WEIGHT,
    Array,
    Decided,
    Flow,
    Progress,
    nothing_done,
)
from solver.tasks.serial_kernel import Shop, pop, push


@inlined
def _until(now: int, r: int, at: Progress, decided: Decided) -> np.int64:
    """Return the step by which a job started at step `now` on stream `r` must end, for urgent ones that are ready soon.

    Such an urgent job is worth waiting for if its `patience` reaches until it is ready, and its rank is lower than that
    of each urgent job that can start now. 2**62 if there is none.
    """
    limit, none_open = np.int64(2**62), at.open_jobs[r, URGENT] == 0
    for k in range(at.n_coming[r]):
        n = at.coming[r, k]
        better = none_open or decided.rank[n] < decided.rank[at.ready[r, URGENT, 0]]
        if better and at.begin[n] <= now + decided.patience[n]:
            limit = min(limit, at.begin[n])
    return limit


@inlined
def _add_event(at: Progress, event: int) -> None:
    """Add an event to the heap of events; its time in steps is `at.times[event]`.

    Event n is the end of job n, event (number of jobs + n) the moment from which job n can start.
    """
    at.clock[EVENTS] = push(at.events, at.times, at.clock[EVENTS], event)


@inlined
def _offer(shop: Shop, decided: Decided, at: Progress, n: int) -> None:
    """Put job `n` into its stream's heap of startable jobs of its class, and mark the stream for a decision."""
    r, kind = shop.stream[n], decided.kind[n]
    at.open_jobs[r, kind] = push(at.ready[r, kind], decided.rank, at.open_jobs[r, kind], n)
    _look_at(at, r)


@inlined
def _look_at(at: Progress, r: int) -> None:
    """Mark stream `r` for a decision, since it or a job that it may start has become free.

    At each point in time a stream decides once, after all events of that time.
    """
    if not at.touched[r]:
        at.touched[r], at.looked_at[at.clock[TOUCHED]] = True, r
        at.clock[TOUCHED] += 1


@inlined
def _get_ready(shop: Shop, decided: Decided, at: Progress, n: int) -> None:
    """Make job `n`, all of whose predecessors' results have arrived, startable, and no longer expected.

    Expected are urgent jobs of which it is known when they will be ready, for which a stream may wait.
    """
    _offer(shop, decided, at, n)
    r = shop.stream[n]
    for k in range(at.n_coming[r]):
        if at.coming[r, k] == n:
            at.n_coming[r] -= 1
            at.coming[r, k] = at.coming[r, at.n_coming[r]]
            break


@inlined
def _end(shop: Shop, flow: Flow, decided: Decided, at: Progress, n: int, now: int) -> None:
    """Process the end of job `n` at step `now`.

    If it frees memory or a place in flight, blocked jobs are offered again. Memory is freed by the last job of a group,
    a place in flight by the last of the passes after a forward. Jobs of the same device are offered, or of all devices
    if the memory freed is no device's own.
    """
    r, device, devices = shop.stream[n], flow.device[flow.stage[n]], at.n_blocked.shape[0]
    at.busy[r], at.clock[LAST] = False, now
    at.clock[DONE] += 1
    freed, shared, g, whole = False, False, shop.group[n], flow.after_forward[n]
    if g >= 0:
        at.left[g] -= 1
        if at.left[g] == 0:
            at.level[shop.given_to[g]] -= shop.gives[g]
            freed, shared = True, shop.given_to[g] >= devices
    if whole >= 0:
        at.parts[whole] -= 1
        if at.parts[whole] == 0:
            at.in_flight[flow.stage[n]] -= 1
            freed = True
    for d in range(devices if shared else 1 if freed else 0):
        of_device = d if shared else device
        for k in range(at.n_blocked[of_device]):
            _offer(shop, decided, at, at.blocked[of_device, k])
        at.n_blocked[of_device] = 0
    _look_at(at, r)


@inlined
def _fits(shop: Shop, flow: Flow, decided: Decided, n: int, at: Progress) -> bool:
    """True if job `n` may start now: the in-flight limit of its stage and its memory admit it.

    The limit counts for a job that begins its stage's forward, which must also leave the reserve of its memory free.
    """
    if flow.opens[n] and at.in_flight[flow.stage[n]] >= decided.most[flow.stage[n]]:
        return False
    m = shop.memory[n]
    if shop.takes[n] == 0 or shop.room[m] < 0:
        return True
    wanted = shop.takes[n] + (decided.reserve[m] if flow.opens[n] else 0)
    return at.level[m] + wanted <= shop.room[m]


@inlined
def _choose(shop: Shop, flow: Flow, decided: Decided, at: Progress, r: int, now: int) -> int:
    """Return the job that free stream `r` starts at step `now`, or -1.

    Jobs that do not fit become blocked on their device. Urgent jobs are first, then of backwards and forwards those
    that the policy prefers, then the others, then weight tasks; these go before the others if at least `stock` of them
    wait. Of a class the job of lowest rank is taken. Jobs that would end too late for an urgent one that is expected
    are passed over, at most `MOST_ASIDE` of a class.
    """
    limit = _until(now, r, at, decided)
    first = BACKWARD if decided.backwards_first else FORWARD
    for place in range(5):
        kind = URGENT if place == 0 else first if place == 1 else 3 - first if place == 3 else WEIGHT
        if place == 2 and at.open_jobs[r, WEIGHT] < decided.stock[r]:
            continue
        chosen, n_aside = -1, 0
        while chosen < 0 and at.open_jobs[r, kind] > 0 and n_aside < MOST_ASIDE:
            n, at.open_jobs[r, kind] = pop(at.ready[r, kind], decided.rank, at.open_jobs[r, kind])
            if now + shop.steps[n] > limit:
                at.aside[n_aside], n_aside = n, n_aside + 1
            elif not _fits(shop, flow, decided, n, at):
                device = flow.device[flow.stage[n]]
                at.blocked[device, at.n_blocked[device]] = n
                at.n_blocked[device] += 1
            else:
                chosen = n
        for k in range(n_aside):
            at.open_jobs[r, kind] = push(at.ready[r, kind], decided.rank, at.open_jobs[r, kind], at.aside[k])
        if chosen >= 0:
            return chosen
    return -1


@inlined
def _begin(shop: Shop, flow: Flow, decided: Decided, at: Progress, n: int, now: int) -> None:
    """Start job `n` at step `now`: it occupies its stream and memory, and the event of its end is added.

    Also added is, for each successor whose last predecessor it was, the event of becoming ready: the latest end of a
    predecessor plus lag. Urgent ones are expected by their stream from now on.
    """
    at.busy[shop.stream[n]] = True
    if flow.opens[n]:
        at.in_flight[flow.stage[n]] += 1
    at.level[shop.memory[n]] += shop.takes[n]
    at.times[n] = now + shop.steps[n]
    _add_event(at, n)
    n_jobs = shop.steps.shape[0]
    for a in range(shop.feeds_at[n], shop.feeds_at[n + 1]):
        after = shop.feeds_to[a]
        at.begin[after] = max(at.begin[after], at.times[n] + shop.feeds_lag[a])
        at.missing[after] -= 1
        if at.missing[after] == 0:
            at.times[n_jobs + after] = at.begin[after]
            _add_event(at, n_jobs + after)
            q = shop.stream[after]
            if decided.kind[after] == URGENT and at.n_coming[q] < MOST_COMING:
                at.coming[q, at.n_coming[q]] = after
                at.n_coming[q] += 1


@inner
def _run(shop: Shop, flow: Flow, decided: Decided, at: Progress, start: Array) -> int:
    """Process event after event: write the starts of all jobs in steps into `start`; return the latest end.

    -1 in a deadlock, if some job never starts. `at` is the progress, which this changes.
    """
    n_jobs, clock = shop.steps.shape[0], at.clock
    for n in range(n_jobs):
        if at.missing[n] == 0:
            _add_event(at, n_jobs + n)
    while clock[EVENTS] > 0:
        now, clock[TOUCHED] = at.times[at.events[0]], 0
        while clock[EVENTS] > 0 and at.times[at.events[0]] == now:
            event, clock[EVENTS] = pop(at.events, at.times, clock[EVENTS])
            if event >= n_jobs:
                _get_ready(shop, decided, at, event - n_jobs)
            else:
                _end(shop, flow, decided, at, event, now)
        for late in (False, True):
            for k in range(clock[TOUCHED]):
                r = at.looked_at[k]
                if flow.late[r] != late:
                    continue
                at.touched[r] = False
                if at.busy[r]:
                    continue
                n = _choose(shop, flow, decided, at, r, now)
                if n >= 0:
                    start[n] = now
                    _begin(shop, flow, decided, at, n, now)
    return clock[LAST] if clock[DONE] == n_jobs else -1


@compiled
def dispatch(shop: Shop, flow: Flow, decided: Decided, start: Array) -> int:
    """Write the starts of all jobs in steps into `start`, by the policy `decided`.

    Return the latest end, or -1 in a deadlock. `shop` and `flow` have the data of the jobs. Compiled, since a search
    over policies makes thousands of schedules.
    """
    return _run(shop, flow, decided, nothing_done(shop, flow, decided), start)
