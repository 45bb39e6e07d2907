"""The optimality gap: the distance of a value from its lower bound, as a share of the value."""

from __future__ import annotations

from pipesched.problem.attainable_spans import Value


def gap(value: Value, lower_bound: Value) -> float:
    """Return (value - lower bound) / value; 0 for a value of 0."""
    return float((value - lower_bound) / value) if value else 0.0
