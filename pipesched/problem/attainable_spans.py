"""Attainable objective values: integer ticks, and for the span also fractions of a tick.

For the span a device starts as late as the others allow, so the least span of an order is the maximum mean of a cycle
of paths: from the first pass of a device to the last of another, from the first of that one on, and back to the start.
All paths are whole ticks, so the denominator of the mean is the number of devices on the cycle.
"""

from __future__ import annotations

from collections.abc import Collection
from fractions import Fraction

from pipesched.problem.network.open_ends import devices_with_open_ends
from pipesched.problem.problem import Problem

# Integers stay ints, which are many times as fast.
Value = int | Fraction


def largest_denominator(problem: Problem, opened: Collection[int] = ()) -> int:
    """The largest denominator of a value, in ticks; `opened` are devices that have begun, at times that are known.

    1 where the first and the last task of all are in any case those of one device: no other one takes longer then. A
    cycle of the others passes once at most through a time that is known, be it that of one opened device or another.
    """
    if not problem.objective.by_device:
        return 1
    if len(devices_with_open_ends(problem.network)) <= 1:
        return 1
    devices = {problem.placement.stage_device[stage] for stage, walk in enumerate(problem.microbatches_of) if walk}
    return max(1, len(devices - set(opened)) + bool(opened))


def simplest(value: Value) -> Value:
    """An integer where it is one."""
    return int(value) if value.denominator == 1 else value


def least_from(value: Value, parts: int) -> Value:
    """The least fraction of at most this denominator that is not below the value."""
    return value if value.denominator <= parts else simplest(max(_neighbours(value, parts)))


def least_above(value: Value, parts: int) -> Value:
    """The least fraction of at most this denominator that is above the value."""
    return _next(value, parts, 1) if value.denominator <= parts else least_from(value, parts)


def most_up_to(value: Value, parts: int) -> Value:
    """The greatest fraction of at most this denominator that is not above the value."""
    return value if value.denominator <= parts else simplest(min(_neighbours(value, parts)))


def most_below(value: Value, parts: int) -> Value:
    """The greatest fraction of at most this denominator that is below the value."""
    return _next(value, parts, -1) if value.denominator <= parts else most_up_to(value, parts)


def _neighbours(value: Value, parts: int) -> tuple[Fraction, Fraction]:
    """The nearest fractions of at most this denominator on both sides of a value of a larger one.

    They are the last convergent and semiconvergent of its continued fraction (Hardy and Wright, chapter 10).
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


def _next(value: Value, parts: int, way: int) -> Value:
    """The neighbour above (`way` 1) or below (-1) among the fractions of at most this denominator.

    Neighbours a/b and c/d in a Farey sequence differ by 1/(bd); of those the largest d is the nearest.
    """
    a, b = value.numerator, value.denominator
    least = -way * pow(a, -1, b) % b if b > 1 else 0
    d = least + (parts - least) // b * b
    return simplest(Fraction(a * d + way, b * d))
