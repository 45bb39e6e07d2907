"""Memory while tasks are dispatched by a policy, compiled: whether a job may begin, what it takes and gives back."""

from __future__ import annotations

from solver.backends.compiled import inlined
from solver.tasks.policy.state import MOST_TAKING


@inlined
def fits(shop, flow, decided, n, at, taking):  # type: ignore[no-untyped-def]
    """Whether a job may begin: its stage has few enough micro-batches under way, and its memory room.

    While a job runs that takes memory, what other streams take counts for it too, since in other timings they may take
    it first: what has been given back since it began is not there for them.
    """
    if flow.opens[n] and at.under_way[flow.stage[n]] >= decided.most[flow.stage[n]]:
        return False
    m = shop.memory[n]
    if shop.takes[n] == 0 or shop.room[m] < 0:
        return True
    wanted = shop.takes[n] + (decided.reserve[m] if flow.opens[n] else 0)
    if at.level[m] + wanted > shop.room[m]:
        return False
    for k in range(taking.count[m]):
        if taking.count[m] == MOST_TAKING or taking.spare[m, k] < shop.takes[n]:
            taking.refused[m] = True
            return False
    return True


@inlined
def take(shop, n, level, taking):  # type: ignore[no-untyped-def]
    """A job begins that takes memory."""
    m = shop.memory[n]
    level[m] += shop.takes[n]
    if shop.takes[n] == 0 or shop.room[m] < 0:
        return
    for k in range(taking.count[m]):
        taking.spare[m, k] -= shop.takes[n]
    k = taking.count[m]
    taking.job[m, k], taking.spare[m, k] = n, shop.room[m] - level[m]
    taking.count[m] += 1


@inlined
def give_back(shop, n, taking):  # type: ignore[no-untyped-def]
    """A job that took memory has ended; whether others were refused meanwhile that may fit now."""
    m = shop.memory[n]
    if shop.takes[n] == 0 or shop.room[m] < 0:
        return False
    for k in range(taking.count[m]):
        if taking.job[m, k] == n:
            taking.count[m] -= 1
            last = taking.count[m]
            taking.job[m, k], taking.spare[m, k] = taking.job[m, last], taking.spare[m, last]
            break
    refused = taking.refused[m]
    taking.refused[m] = False
    return refused
