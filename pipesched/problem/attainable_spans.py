"""Attainable objective values: integer ticks, and for the span also fractions of a tick.

Searches move a bound or a threshold to the next value that a schedule can have at all. Under the span each device
starts as late as the others allow, so the least span of an order is the maximum mean length of the paths in a cycle:
from the first pass of a device to the last pass of another, from that device's first pass on, and back to the start.
All paths are whole ticks, so the denominator of the mean is at most the number of devices on the cycle.
"""

from __future__ import annotations

from collections.abc import Collection
from fractions import Fraction

from pipesched.problem.network.open_ends import devices_with_open_ends
from pipesched.problem.problem import Problem
from pipesched.problem.quantities import DeviceId

# An objective value, or a bound of one, in ticks. Integers stay ints, which are many times as fast.
Value = int | Fraction


def largest_denominator(problem: Problem, opened: Collection[DeviceId] = ()) -> int:
    """Return the largest denominator that an objective value, in ticks, can have as a fraction.

    Under the span it is the number of devices that run passes; under every other objective it is 1. It is also 1 under
    the span if the first and the last task of an iteration always run on the same device, since the span is then that
    device's time. `opened` are the devices that have already begun in an iteration under way: their starts are known,
    so all of them count as one device.
    """
    if not problem.objective.by_device:
        return 1
    if len(devices_with_open_ends(problem.network)) <= 1:
        return 1
    devices = {problem.placement.stage_device[stage] for stage, walk in enumerate(problem.microbatches_of) if walk}
    return max(1, len(devices - set(opened)) + bool(opened))


def simplest(value: Value) -> Value:
    """Return the value as an int if it is whole, else unchanged."""
    return int(value) if value.denominator == 1 else value


def least_from(value: Value, parts: int) -> Value:
    """Return the least fraction with a denominator of at most `parts` that is at least `value`."""
    return value if value.denominator <= parts else simplest(max(_neighbours(value, parts)))


def least_above(value: Value, parts: int) -> Value:
    """Return the least fraction with a denominator of at most `parts` that is above `value`."""
    return _next(value, parts, 1) if value.denominator <= parts else least_from(value, parts)


def most_up_to(value: Value, parts: int) -> Value:
    """Return the greatest fraction with a denominator of at most `parts` that is at most `value`."""
    return value if value.denominator <= parts else simplest(min(_neighbours(value, parts)))


def most_below(value: Value, parts: int) -> Value:
    """Return the greatest fraction with a denominator of at most `parts` that is smaller than `value`."""
    return _next(value, parts, -1) if value.denominator <= parts else most_up_to(value, parts)


def _neighbours(value: Value, parts: int) -> tuple[Fraction, Fraction]:
    """Return the two fractions nearest to `value`, one smaller and one larger, in no fixed order.

    Their denominators are at most `parts`. The value's own denominator must be larger. They are the last convergent and
    semiconvergent of its continued fraction (Hardy and Wright, chapter 10).
    """
    p, q, last_p, last_q = 1, 0, 0, 1
    over, under = value.numerator, value.denominator
    while True:
        whole = over // under
        if last_q + whole * q > parts:
            break
        p, q, last_p, last_q = last_p + whole * p, last_q + whole * q, p, q
        over, under = under, over - whole * under
    times = (parts - last_q) // q
    return Fraction(p, q), Fraction(last_p + times * p, last_q + times * q)


def _next(value: Value, parts: int, direction: int) -> Value:
    """Return the next fraction with a denominator of at most `parts` after `value` (`direction` 1) or before it (-1).

    The value's own denominator must be at most `parts`. Neighbours a/b and c/d in a Farey sequence differ by 1/(bd); of
    the candidates the one with the largest d is nearest.
    """
    a, b = value.numerator, value.denominator
    least = -direction * pow(a, -1, b) % b if b > 1 else 0
    d = least + (parts - least) // b * b
    return simplest(Fraction(a * d + direction, b * d))
