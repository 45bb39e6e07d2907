"""The Lagrangian lower bound: one device's time and memory constraints are relaxed with multipliers at instants.

A linear program finds the multipliers. What they prove is computed exactly: if the least cost of all micro-batches is
above the multipliers' value of the whole device over a horizon, the micro-batches do not fit into that horizon.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from fractions import Fraction
from math import floor, inf
from threading import Event
from typing import NamedTuple

from formulations.single_device.visits import OneDevice
from pipesched.problem.attainable_spans import Value, largest_denominator, least_above
from pipesched.problem.formatting import amount
from pipesched.problem.problem import Problem
from pipesched.results.certificate import Certificate
from pipesched.results.evidence import DeviceMultipliers
from solver.bounds.analytic.critical_paths import Paths, chains_on
from solver.bounds.analytic.head_and_tail import head_and_tail
from solver.bounds.analytic.heads_and_tails import heads_and_tails
from solver.bounds.lagrangian.multipliers import find_multipliers
from solver.bounds.lagrangian.single_device import memory_unit, one_device
from solver.bounds.lagrangian.subproblem import Multipliers, solve_subproblem

# The horizon is searched for to this relative accuracy, on so many devices.
_CLOSE, _DEVICES = 0.001, 2
# Ticks beyond which sums might overflow 64 bits.
_LONGEST = 2**60


class _Asked(NamedTuple):
    """A horizon that was tried, and about how many micro-batches fit into it."""

    ticks: int
    passing: float


class _Place(NamedTuple):
    """The relaxed device, and the device whose busy interval is the horizon; the makespan if `whose` is None."""

    device: int
    owner: int | None


def lagrangian_bounds(
    problem: Problem, proved: Value, at_most: int, seconds: float, stop: Event
) -> Iterator[Certificate]:
    """Increasing Lagrangian bounds of single devices, between the proved bound and a known value, in ticks.

    The devices with the strongest head-and-tail bounds come first. None where blocks overlap.
    """
    deadline = time.monotonic() + seconds
    if problem.overlaps or at_most > _LONGEST:
        return
    paths = Paths(problem)
    for place in _places(problem, paths):
        for certificate in _of_one(problem, paths, place, proved, at_most, deadline, stop):
            proved = certificate.value
            yield certificate


def _places(problem: Problem, paths: Paths) -> list[_Place]:
    """The devices with the strongest head-and-tail bounds, each with the longest head plus tail."""
    places = []
    for certificate in sorted(head_and_tail(problem, problem.objective), key=lambda one: -one.value)[:_DEVICES]:
        assert certificate.device is not None
        first = [stages[0] for stages in chains_on(problem, certificate.device)]
        longest = max(
            heads_and_tails(problem, paths, problem.objective, first),
            key=lambda ends: ends.least_head + min(ends.tails),
        )
        places.append(_Place(certificate.device, longest.owner))
    return places


def _of_one(
    problem: Problem, paths: Paths, place: _Place, proved: Value, at_most: int, deadline: float, stop: Event
) -> Iterator[Certificate]:
    """The Lagrangian bounds of one device. Ends at once if none is above the proved bound.

    `deadline` is a reading of the monotonic clock, all else is in ticks.
    """
    device = one_device(problem, paths, *place)
    wanted = sum(trip.microbatches for trip in device.trips)
    low, high = _Asked(max(floor(proved), _alone(device)), 0.0), _Asked(at_most, inf)
    until = low.ticks + (high.ticks - low.ticks) // 8
    while high.ticks - low.ticks > max(1, _CLOSE * high.ticks):
        left = deadline - time.monotonic()
        multipliers = find_multipliers(device, until, left) if left > 0 and not stop.is_set() else None
        if multipliers is None:
            return
        paid, all_of_it = least_total_cost(device, multipliers, until), multipliers.of_all(device.capacity)
        if paid > all_of_it:
            low = _Asked(until + 1, wanted * all_of_it / paid)
            yield _certificate(problem, place, multipliers, until, Fraction(paid, all_of_it))
        elif paid and low.passing:
            high = _Asked(until, wanted * all_of_it / paid)
        else:
            return
        until = _next(low, high, wanted)


def _next(low: _Asked, high: _Asked, wanted: int) -> int:
    """The next horizon to try: by linear interpolation, where all micro-batches would just fit.

    Halfway where interpolation is no use: the count is constant over long ranges when memory limits it.
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


def least_total_cost(device: OneDevice, multipliers: Multipliers, until: int) -> int:
    """The least cost of all micro-batches if all end by `until`."""
    return sum(trip.microbatches * solve_subproblem(device, trip, multipliers, until) for trip in device.trips)


def _certificate(problem: Problem, place: _Place, multipliers: Multipliers, until: int, times: Fraction) -> Certificate:
    """The certificate where the least cost is `times` the value of the device."""
    # Visits rounded up to whole ticks cost the same and keep their lags, so this holds for fractional times too.
    value = least_above(until, largest_denominator(problem))
    ends = (
        "time 0 and the end of the last pass"
        if place.owner is None
        else f"the start and the end of device {place.owner}"
    )
    first, last = (amount(problem, int(multipliers.instants[end])) for end in (0, -1))
    text = (
        f"Lagrangian relaxation of the time and memory constraints of device {place.device} at "
        f"{len(multipliers.instants)} instants from {first} to {last}. If only {amount(problem, until)} lay between "
        f"{ends}, the least cost of all micro-batches under the multipliers would exceed the value of its time "
        f"and memory at those instants by {float(100 * (times - 1)):.2g} %: so {amount(problem, value)} at least. A "
        "linear program found the multipliers; the sums are exact integers."
    )
    evidence = DeviceMultipliers(
        place.device, place.owner, problem.tick, until, memory_unit(problem, place.device) * problem.resolution,
        *(tuple(map(int, each)) for each in multipliers),
    )  # fmt: skip
    return Certificate("Lagrangian", value, text, place.device, evidence)
