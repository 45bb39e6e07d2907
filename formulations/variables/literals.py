"""Types of CP-SAT's literals, of truth values that may be constant, and of linear expressions; the largest horizon."""

from __future__ import annotations

from typing import cast

from ortools.sat.python import cp_model

from formulations.jobs.quantities import TimeSteps
from pipesched.errors import PipeschedError

# What CP-SAT decides, and what is known or decided by it.
Literal = cp_model.IntVar | cp_model.NotBooleanVariable
Truth = bool | Literal
Linear = cp_model.LinearExpr | cp_model.IntVar | int

# CP-SAT sums 64-bit integers; beyond this horizon a sum of many terms may overflow.
_LONGEST = 2**50


class TooLong(PipeschedError):
    """Error for a problem whose times, in steps, are too large for sums in CP-SAT's 64-bit integers.

    Its text is one sentence.
    """


def refuse_too_long(horizon: TimeSteps) -> None:
    """Raise `TooLong` for a horizon, in steps, that CP-SAT cannot represent."""
    if horizon > _LONGEST:
        raise TooLong(
            f"the times need {horizon:.1e} whole steps and CP-SAT takes up to {_LONGEST:.1e}: give them with fewer "
            "decimals"
        )


def negation(truth: Truth) -> Truth:
    """Return the negation of a constant or literal."""
    return not truth if isinstance(truth, bool) else cast(Literal, truth.negated())
