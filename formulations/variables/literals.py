"""Truths that are known or decided by CP-SAT, linear expressions, and the horizon that CP-SAT can take."""

from __future__ import annotations

from typing import cast

from ortools.sat.python import cp_model

from pipesched.errors import PipeschedError

# What CP-SAT decides, and what is known or decided by it.
Literal = cp_model.IntVar | cp_model.NotBooleanVariable
Truth = bool | Literal
Linear = cp_model.LinearExpr | cp_model.IntVar | int

# CP-SAT sums 64-bit integers; beyond this horizon a sum of many terms may overflow.
_LONGEST = 2**50


class TooLong(PipeschedError):
    """A problem whose times CP-SAT's integers cannot hold; the text says so in one sentence."""


def refuse_too_long(horizon: int) -> None:
    """Raises `TooLong` for a horizon, in steps, that CP-SAT cannot take."""
    if horizon > _LONGEST:
        raise TooLong(
            f"the times need {horizon:.1e} whole steps and CP-SAT takes up to {_LONGEST:.1e}: give them with fewer "
            "decimals"
        )


def negation(truth: Truth) -> Truth:
    """The opposite of a truth."""
    return not truth if isinstance(truth, bool) else cast(Literal, truth.negated())
