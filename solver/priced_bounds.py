"""Bounds by prices of one device's time and memory: a linear program finds them, and they are held to exact sums.

This is Lagrangian relaxation: what a device can run and hold at each instant is no rule any more but has its price. If
all micro-batches together must pay more than all of that costs, they do not fit into the time.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from math import inf
from threading import Event
from typing import NamedTuple

from formulations.time_indexed import OneDevice
from pipesched.amounts import amount
from pipesched.certificate import Certificate
from pipesched.problem import Problem
from solver.bounds.head_and_tail import head_and_tail, ways
from solver.bounds.paths import Paths, chains_on
from solver.cheapest import Prices, cheapest
from solver.prices import find_prices
from solver.visits import one_device

# A time is looked for until it is known this well, and so many devices are tried.
_CLOSE, _DEVICES = 0.001, 2


class _Place(NamedTuple):
    """A device that charges, and whose begin and end the time is measured from; of all if `whose` is None."""

    device: int
    whose: int | None


def priced_bounds(problem: Problem, proved: int, at_most: int, seconds: float, stop: Event) -> Iterator[Certificate]:
    """Ever better bounds that prices of single devices prove, between what is proved and what is known, in ticks.

    The devices that bound most by what keeps them busy come first. Nothing where blocks overlap.
    """
    deadline = time.monotonic() + seconds
    for place in _places(problem) if problem.costs.overlapped is None else []:
        for certificate in _of_one(problem, place, proved, at_most, deadline, stop):
            proved = certificate.value
            yield certificate


def _places(problem: Problem) -> list[_Place]:
    """The devices with the strongest certificates of what keeps them busy, each with the longest way there and back."""
    paths = Paths(problem)
    places = []
    for certificate in sorted(head_and_tail(problem, problem.objective), key=lambda one: -one.value)[:_DEVICES]:
        assert certificate.device is not None
        first = [stages[0] for stages in chains_on(problem, certificate.device)]
        longest = max(ways(problem, paths, problem.objective, first), key=lambda way: way.there + min(way.back))
        places.append(_Place(certificate.device, longest.whose))
    return places


def _of_one(
    problem: Problem, place: _Place, proved: int, at_most: int, deadline: float, stop: Event
) -> Iterator[Certificate]:
    """What prices of one device prove. It ends at once if that is nothing near above what is proved."""
    device = one_device(problem, Paths(problem), *place)
    wanted = sum(trip.microbatches for trip in device.trips)
    # The longest time refuted and the shortest that is not, and how many micro-batches pass in each.
    low, high = (max(proved, _alone(device)), 0.0), (at_most, inf)
    until = low[0] + (high[0] - low[0]) // 8
    while high[0] - low[0] > max(1, _CLOSE * high[0]):
        left = deadline - time.monotonic()
        prices = find_prices(device, until, left) if left > 0 and not stop.is_set() else None
        if prices is None:
            return
        paid, all_of_it = pays(device, prices, until), prices.of_all(device.capacity)
        passing = wanted * all_of_it / paid if paid else inf
        if paid > all_of_it:
            low = until + 1, passing
            yield _certificate(problem, place, prices, until, paid / all_of_it)
        elif low[1]:
            high = until, passing
        else:
            return
        until = _next(low, high, wanted)


def _next(low: tuple[int, float], high: tuple[int, float], wanted: int) -> int:
    """The time to ask about: where all would just pass if as many more did in every tick.

    Halfway where that tells nothing: often as many pass for a long while, when rounds through memory are full.
    """
    (refuted, few), (open_, many) = low, high
    if many < wanted * (1 + _CLOSE):
        return (refuted + open_) // 2
    guess = refuted * wanted / few if many == inf else refuted + (open_ - refuted) * (wanted - few) / (many - few)
    margin = (open_ - refuted) // 8
    return min(max(int(guess), refuted + margin), open_ - margin)


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


def _certificate(problem: Problem, place: _Place, prices: Prices, until: int, times: float) -> Certificate:
    """All micro-batches together pay so many times what there is to pay for."""
    value = until + 1
    ends = "time 0 and the end of all" if place.whose is None else f"the begin and the end of device {place.whose}"
    first, last = (amount(problem, int(prices.instants[end])) for end in (0, -1))
    text = (
        f"Let device {place.device} charge for what it runs and holds in memory at {len(prices.instants)} instants "
        f"from {first} to {last}, each at its price. If no more than {amount(problem, until)} lay between {ends}, "
        f"micro-batches would pay {times:.6g} times what all its time and memory cost at those instants, though each "
        f"came and went when that is cheapest: so {amount(problem, value)} at least. A linear program found the "
        "prices; the sums are exact."
    )
    return Certificate("prices", value, text, place.device)
