"""Local search on the other workers while a phase that uses one core looks for lower bounds."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from threading import Event
from typing import NamedTuple

from pipesched.checking.check import check_bound
from pipesched.results.certificate import Certificate
from pipesched.results.gap import gap
from solver.backends.interruptible import run_within
from solver.engine.part_times import MEANWHILE
from solver.engine.search import Search
from solver.engine.tuning import LOCAL_SEARCH_SECONDS_A_PASS

# Seconds that a phase must take before local search begins: many are through sooner.
_SOON = 0.5
# By how much longer than a bound its check takes at most, beside a local search: 1.3 to 1.7 times by itself. Once a
# check has taken some seconds, that of a stronger bound takes at most so many times as long a second of the bound.
_CHECKED, _SOME_SECONDS, _STRONGER = 3.0, 1.0, 1.3
# Seconds by which the check of a bound may be later than the time limit.
_LATE = 1.0
# The gap below which a better bound may prove all that is left.
_NEAR = 0.001


@contextmanager
def improving_meanwhile(search: Search) -> Iterator[None]:
    """Improve the incumbent until the block is over. Its bounds are of use whatever schedule comes of it.

    Not with one worker, nor where work is counted instead of time, since what is found depends on how long the block
    takes.
    """
    workers = (search.limits.workers or os.cpu_count() or 1) - 1
    if workers < 1 or not search.engine.meanwhile or not _worth_it(search):
        yield
        return
    over = Event()
    with ThreadPoolExecutor(1) as pool:
        found = pool.submit(_improve, search, workers, over)
        try:
            yield
        finally:
            over.set()
        found.result()


def argue_meanwhile(search: Search, bounds: Iterable[Certificate], seconds: float) -> None:
    """Claim the bounds found in so many seconds, up to the strongest whose check is likely to end in the time left.

    How long a check took says more of the next one than what is known beforehand.
    """
    found, times = list[_Timed](), _CHECKED
    with improving_meanwhile(search):
        run_within(seconds, search.stop, lambda: found.extend(_timed_until_close(search, bounds)))
        while fitting := [one for one in found if times * one.seconds <= search.clock.allowed()]:
            strongest, began = max(fitting, key=lambda one: one.certificate.value), time.monotonic()
            _claim(search, [one.certificate for one in fitting])
            checked = time.monotonic() - began
            if checked >= _SOME_SECONDS and strongest.seconds > 0:
                times = min(times, _STRONGER * checked / strongest.seconds)
            found = [one for one in found if one.certificate.value > strongest.certificate.value]


class _Timed(NamedTuple):
    """A bound, and how many seconds it took to find after the one before."""

    certificate: Certificate
    seconds: float


def _timed_until_close(search: Search, bounds: Iterable[Certificate]) -> Iterator[_Timed]:
    """The bounds up to the first that leaves no more than the gap asked for: none after it is looked for."""
    since = time.monotonic()
    for certificate in bounds:
        yield _Timed(certificate, time.monotonic() - since)
        value, since = search.incumbent.value, time.monotonic()
        if value is not None and gap(value, certificate.value) <= search.limits.gap:
            return


def _claim(search: Search, found: Sequence[Certificate]) -> None:
    """A check may take longer than what it checks: one that is not through in time is ended, and nothing claimed."""
    incumbent, strongest = search.incumbent, max(found, key=lambda one: one.value)
    finding = None
    if strongest.value > incumbent.lower_bound:
        check = partial(check_bound, search.problem, strongest)
        finding = run_within(search.clock.allowed() + _LATE, search.stop, check)
        if finding is None:
            return
    for certificate in found:
        incumbent.argue(certificate)
    if finding is not None and incumbent.state.certificate is strongest:
        incumbent.judge(strongest, finding)
    incumbent.check_bound()


def _worth_it(search: Search) -> bool:
    state = search.incumbent.state
    if search.very_long:  # A round of annealing takes too much of the time.
        return False
    if search.clock.counts_work or state.value is None or gap(state.value, state.lower_bound) < _NEAR:
        return False
    return search.clock.left() > _SOON + search.passes * LOCAL_SEARCH_SECONDS_A_PASS and search.kernels_ready(0.0)


def _improve(search: Search, workers: int, over: Event) -> None:
    if not over.wait(_SOON) and not search.done():
        with search.parts.of(MEANWHILE):
            search.improve_orders(search.clock.left(), workers, lambda: over.is_set() or search.done())
