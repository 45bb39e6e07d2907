"""The optimality gap: how far a value is above a lower bound, as a share of the value."""

from __future__ import annotations

from pipesched.problem.attainable_spans import Value


def gap(value: Value, lower_bound: Value) -> float:
    """(value - lower bound) / value."""
    return float((value - lower_bound) / value) if value else 0.0
