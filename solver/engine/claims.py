"""Bounds with an argument, found slice by slice; each is claimed once its check from the evidence is through."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

from pipesched.checking.check import check_bound
from pipesched.results.certificate import Certificate
from pipesched.results.gap import gap
from solver.backends.interruptible import run_within
from solver.engine.search import Search
from solver.engine.slices import Slice, Work
from solver.tuning import FEW, GRACE


class _Timed(NamedTuple):
    """A bound, and how many seconds it took to find after the one before."""

    certificate: Certificate
    seconds: float


def claimed(search: Search, bounds: Callable[[Slice], Iterator[Certificate]]) -> Work:
    """The bounds, each above those before. A slice that ends in the middle of one begins anew, and has more time."""
    while True:
        slice_ = yield
        if claim_found(search, bounds(slice_), slice_) and not search.clock.counts_work:
            return


def claim_found(search: Search, bounds: Iterator[Certificate], slice_: Slice) -> bool:
    """Claim the bounds found in a slice, up to the strongest whose check is likely to end in the time left.

    Whether there are no more. A check may take as long again, which counts as well. How long one took says more of the
    next one than what is known beforehand.
    """
    found, times = list[_Timed](), float(FEW)
    seconds = min(slice_.left(), search.clock.allowed() / 2)
    ended = run_within(seconds, search.stop, partial(_find, search, bounds, found))
    while fitting := [one for one in found if times * one.seconds <= search.clock.allowed()]:
        strongest, began = max(fitting, key=lambda one: one.certificate.value_ticks), time.monotonic()
        claim(search, [one.certificate for one in fitting])
        checked = time.monotonic() - began
        if checked >= GRACE and strongest.seconds > 0:
            times = min(times, 2 * checked / strongest.seconds)
        found = [one for one in found if one.certificate.value_ticks > strongest.certificate.value_ticks]
    return bool(ended)


def _find(search: Search, bounds: Iterator[Certificate], found: list[_Timed]) -> bool:
    """Whether all bounds are found, up to the first that leaves no more than the gap asked for."""
    since = time.monotonic()
    for certificate in bounds:
        found.append(_Timed(certificate, time.monotonic() - since))
        search.found_bound(certificate.value_ticks)
        value, since = search.incumbent.value, time.monotonic()
        if value is not None and gap(value, certificate.value_ticks) <= search.limits.gap:
            return True
    return True


def claim(search: Search, found: Sequence[Certificate]) -> None:
    """Bounds with evidence, once the strongest is checked.

    A check may take longer than what it checks: one that is not through in time is ended, and nothing claimed.
    """
    incumbent, strongest = search.incumbent, max(found, key=lambda one: one.value_ticks)
    finding = None
    if strongest.value_ticks > incumbent.lower_bound:
        check = partial(check_bound, search.problem, strongest)
        finding = run_within(search.clock.allowed() + GRACE, search.stop, check)
        if finding is None:
            return
    for certificate in found:
        incumbent.argue(certificate)
    if finding is not None and incumbent.state.certificate is strongest:
        incumbent.judge(strongest, finding)
    incumbent.check_bound()
