"""Publication of bounds with evidence.

A bound found in a slice becomes the lower bound once its evidence is checked.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from threading import Event
from typing import NamedTuple

from pipesched.checking.check import check_bound
from pipesched.deadline import Deadline, within
from pipesched.results.certificate import Certificate
from pipesched.results.gap import gap
from solver.diagram.params import DIAGRAMS
from solver.engine.search import Search
from solver.engine.slices import Work, in_slices
from solver.parameters import tunable, tuned


@dataclass(frozen=True)
@tunable
class CheckTimeParams:
    """Time for the checks of bounds, and the diagram work that one unit of counted work stands for.

    Until one check was timed, a check is taken to last `check_over_search` times as long as its bound took to find;
    `shortest_timed` is the shortest check, in seconds, from which others are predicted. A check may take
    `extra_seconds` beyond the time limit. `labels_per_unit` labels are a unit of counted work; `share_of_remainder` of
    the time left is for a slice before its check.
    """

    check_over_search: float = tuned(3.0, "times as long as the bound took to find, until one check was timed", 0.1, 20)
    shortest_timed: float = tuned(1.0, "s, the shortest check that says something of the next", 0.01, 10)
    extra_seconds: float = tuned(1.0, "s that a check may take beyond the time limit", 0, 5)
    labels_per_unit: int = tuned(500_000, "labels of a diagram in a unit of counted work", 10_000, 10**7)
    share_of_remainder: float = tuned(0.5, "of the time left, for a slice before its check", 0.1, 1)


_PARAMS = CheckTimeParams()


class _Timed(NamedTuple):
    """A certificate, and the seconds of processor time that it took to find after the one before it."""

    certificate: Certificate
    seconds: float


# Yields increasing bounds, until an event is set or the given number of labels was looked at.
Bounds = Callable[[Event, int], Iterator[Certificate]]


def claimed(search: Search, bounds: Bounds) -> Work:
    """Generator of a bound's subsolver.

    After each slice it publishes the bounds found in the slice, once they are checked. `bounds(stop, labels)` yields
    certificates until the event `stop` is set or so many labels of diagrams were expanded. Slices continue one run of
    it; under a deterministic limit each slice starts it again, with as many labels as the slice's work allows.
    """
    while search.clock.counts_work:
        slice_ = yield
        claim_found(search, bounds(search.stop, slice_.counted(_PARAMS.labels_per_unit) or DIAGRAMS.most_labels))
    found = UncheckedBounds(search)
    yield from in_slices(
        search.stop,
        lambda stop: found.look_for(bounds(stop, DIAGRAMS.most_labels)),
        found.claim,
        _PARAMS.share_of_remainder,
    )


def claim_found(search: Search, bounds: Iterator[Certificate]) -> None:
    """Collect certificates until one closes the gap, and publish those whose checks fit into the time left.

    The others are dropped.
    """
    found = UncheckedBounds(search)
    found.look_for(bounds)
    found.claim()


class UncheckedBounds:
    """Certificates that a subsolver found but that are not yet checked and published.

    The time of a check is predicted from the time that it took to find the bound, and from the check before.
    Certificates whose check never fits into the time left are lost at the end of the search.
    """

    def __init__(self, search: Search) -> None:
        self._search, self._bounds, self._times = search, list[_Timed](), _PARAMS.check_over_search

    def look_for(self, bounds: Iterator[Certificate]) -> None:
        """Collect certificates until the iterator ends or one closes the gap as far as the search asks for."""
        search, since = self._search, time.thread_time()
        for certificate in bounds:
            self._bounds.append(_Timed(certificate, time.thread_time() - since))
            search.found_bound(certificate.value_ticks)
            value, since = search.incumbent.value, time.thread_time()
            if value is not None and gap(value, certificate.value_ticks) <= search.limits.gap:
                return

    def claim(self) -> None:
        """Check and publish the strongest certificate with a check that should fit into the time left, and weaker ones.

        This repeats as long as further certificates fit. Stronger ones are kept for the next call.
        """
        search = self._search
        while fitting := [one for one in self._bounds if self._times * one.seconds <= search.clock.allowed()]:
            strongest, began = max(fitting, key=lambda one: one.certificate.value_ticks), time.monotonic()
            claim(search, [one.certificate for one in fitting])
            checked = time.monotonic() - began
            if checked >= _PARAMS.shortest_timed and strongest.seconds > 0:
                self._times = min(self._times, 2 * checked / strongest.seconds)
            self._bounds = [
                one for one in self._bounds if one.certificate.value_ticks > strongest.certificate.value_ticks
            ]


def claim(search: Search, found: Sequence[Certificate]) -> None:
    """Check the strongest of the certificates `found` from its evidence, if it is above the lower bound.

    Then publish all; `found` must not be empty. If the check fails, all certificates of that one's kind are dropped.
    The check may end a little after the time limit; if it does not end by then, nothing is published. An error of the
    check is raised here.
    """
    incumbent, strongest = search.incumbent, max(found, key=lambda one: one.value_ticks)
    finding = None
    if strongest.value_ticks > incumbent.lower_bound:
        check = partial(check_bound, search.problem, strongest)
        finding = within(Deadline.after(search.clock.allowed() + _PARAMS.extra_seconds, search.stop), check)
        if finding is None:
            return
    for certificate in found:
        incumbent.argue(certificate)
    if finding is not None and incumbent.state.certificate is strongest:
        incumbent.judge(strongest, finding)
    incumbent.check_bound()
