"""Bounds by prices of one device's time and memory: a linear program finds them, and they are held to exact sums.

This is Lagrangian relaxation: what a device can run and hold at each instant is no rule any more but has its price. If
all micro-batches together must pay more than all of that costs, they do not fit into the time.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from fractions import Fraction
from math import inf
from threading import Event
from typing import NamedTuple

from formulations.visits import OneDevice
from pipesched.amounts import amount
from pipesched.certificate import Certificate
from pipesched.problem import Problem
from solver.bounds.head_and_tail import head_and_tail, ways
from solver.bounds.paths import Paths, chains_on
from solver.cheapest import Prices, cheapest
from solver.one_device import one_device
from solver.prices import find_prices

# A time is looked for until it is known this well, and so many devices are tried.
_CLOSE, _DEVICES = 0.001, 2
# Ticks beyond which sums might leave 64 bits.
_LONGEST = 2**60


class _Asked(NamedTuple):
    """Where what is refuted ends, or what is unknown begins, and about how many micro-batches pass until then."""

    ticks: int
    passing: float


class _Place(NamedTuple):
    """A device that charges, and whose begin and end the time is measured from; of all if `whose` is None."""

    device: int
    whose: int | None


def priced_bounds(problem: Problem, proved: int, at_most: int, seconds: float, stop: Event) -> Iterator[Certificate]:
    """Ever better bounds that prices of single devices prove, between what is proved and what is known, in ticks.

    The devices that bound most by what keeps them busy come first. Nothing where blocks overlap.
    """
    deadline = time.monotonic() + seconds
    if problem.costs.overlapped is not None or at_most > _LONGEST:
        return
    paths = Paths(problem)
    for place in _places(problem, paths):
        for certificate in _of_one(problem, paths, place, proved, at_most, deadline, stop):
            proved = certificate.value
            yield certificate


def _places(problem: Problem, paths: Paths) -> list[_Place]:
    """The devices with the strongest certificates of what keeps them busy, each with the longest way there and back."""
    places = []
    for certificate in sorted(head_and_tail(problem, problem.objective), key=lambda one: -one.value)[:_DEVICES]:
        assert certificate.device is not None
        first = [stages[0] for stages in chains_on(problem, certificate.device)]
        longest = max(ways(problem, paths, problem.objective, first), key=lambda way: way.there + min(way.back))
        places.append(_Place(certificate.device, longest.whose))
    return places


def _of_one(
    problem: Problem, paths: Paths, place: _Place, proved: int, at_most: int, deadline: float, stop: Event
) -> Iterator[Certificate]:
    """What prices of one device prove. It ends at once if that is nothing near above what is proved.

    `deadline` is a reading of the monotonic clock, all else is in ticks.
    """
    device = one_device(problem, paths, *place)
    wanted = sum(trip.microbatches for trip in device.trips)
    low, high = _Asked(max(proved, _alone(device)), 0.0), _Asked(at_most, inf)
    until = low.ticks + (high.ticks - low.ticks) // 8
    while high.ticks - low.ticks > max(1, _CLOSE * high.ticks):
        left = deadline - time.monotonic()
        prices = find_prices(device, until, left) if left > 0 and not stop.is_set() else None
        if prices is None:
            return
        paid, all_of_it = pays(device, prices, until), prices.of_all(device.capacity)
        if paid > all_of_it:
            low = _Asked(until + 1, wanted * all_of_it / paid)
            yield _certificate(problem, place, prices, until, Fraction(paid, all_of_it))
        elif paid and low.passing:
            high = _Asked(until, wanted * all_of_it / paid)
        else:
            return
        until = _next(low, high, wanted)


def _next(low: _Asked, high: _Asked, wanted: int) -> int:
    """The time to ask about: where all would just pass if as many more did in every tick.

    Halfway where that tells nothing: often as many pass for a long while, when rounds through memory are full.
    """
    (refuted, few), (unknown, many) = low, high
    if many < wanted * (1 + _CLOSE):
        return (refuted + unknown) // 2
    guess = refuted * wanted / few if many == inf else refuted + (unknown - refuted) * (wanted - few) / (many - few)
    margin = (unknown - refuted) // 8
    return min(max(int(guess), refuted + margin), unknown - margin)


def _alone(device: OneDevice) -> int:
    """The least ticks that one micro-batch takes."""
    visits = [visit for trip in device.trips for visit in trip.visits]
    ends = [visit.earliest + visit.ticks + visit.after for visit in visits]
    if device.all_by_the_end:
        ends += [visit.earliest + visit.ticks + visit.later.ticks for visit in visits if visit.later is not None]
    return max(ends)


def pays(device: OneDevice, prices: Prices, until: int) -> int:
    """What all micro-batches pay together at least if all is over by then."""
    return sum(trip.microbatches * cheapest(device, trip, prices, until) for trip in device.trips)


def _certificate(problem: Problem, place: _Place, prices: Prices, until: int, times: Fraction) -> Certificate:
    """All micro-batches together pay so many times what there is to pay for."""
    value = until + 1
    ends = "time 0 and the end of all" if place.whose is None else f"the begin and the end of device {place.whose}"
    first, last = (amount(problem, int(prices.instants[end])) for end in (0, -1))
    text = (
        f"Let device {place.device} charge for what it runs and holds in memory at {len(prices.instants)} instants "
        f"from {first} to {last}, each at its price. If no more than {amount(problem, until)} lay between {ends}, "
        f"micro-batches would pay {float(100 * (times - 1)):.2g} % more than all its time and memory cost at those "
        f"instants, though each came and went when that is cheapest: so {amount(problem, value)} at least. A linear "
        "program found the prices; the sums are exact."
    )
    return Certificate("prices", value, text, place.device)
