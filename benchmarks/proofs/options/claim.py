"""A claim of an answer, value and bound in the file's unit, against the exact optimum."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any

from benchmarks.matrix.exact.model import Exact, TooLargeError, optimum
from benchmarks.matrix.plan_run import in_fractions
from pipesched.sweeps.cells import Cell

# JSON has numbers of 17 digits; what is rounded when a file is read has nine.
_ROUNDED = Fraction(1, 10**7)
# Work of CP-SAT for one optimum; nearly all take a hundredth of it.
_MOST_WORK = 5.0


def exact(document: Mapping[str, Any], reserved: Fraction = Fraction(0)) -> Exact | None:
    """Return between what the optimum of a document lies; None where it is not found in a few seconds."""
    try:
        return optimum(in_fractions(document), _MOST_WORK, reserved=reserved)
    except TooLargeError:
        return None


def number(value: Any) -> Fraction | None:
    """Return a number of a JSON document; None for null."""
    return None if value is None else Fraction(value)


def holds(what: str, answer: Mapping[str, Any], best: Exact | None) -> tuple[str, ...]:
    """Assert that keys `value`, `lower_bound` and, if there is one, `status` of an answer agree with the optimum.

    Return "compared" for the counts; nothing where the optimum is not known.
    """
    if best is None:
        return ()
    value, bound, status = number(answer.get("value")), number(answer.get("lower_bound")), answer.get("status")
    less, more = 1 - _ROUNDED, 1 + _ROUNDED
    if status == "infeasible":
        assert best.most is None, f"{what}: infeasible, where {float(best.most or 0)} is possible"
        return ("compared",)
    if best.least is None:
        assert value is None, f"{what}: value {float(value or 0)}, where nothing fits"
        return ("compared",)
    if value is not None:
        assert value >= best.least * less, f"{what}: value {float(value)} below the optimum {float(best.least)}"
    if best.most is not None and bound is not None:
        assert bound <= best.most * more, f"{what}: bound {float(bound)} above the optimum {float(best.most)}"
    if status == "optimal" and best.most is not None:
        assert value is not None and value <= best.most * more, (
            f"{what}: optimal at {value}, {float(best.most)} is less"
        )
    return ("compared",)


def same(what: str, value: Any, by_hand: Fraction | None) -> tuple[str, ...]:
    """Assert that a value of JSON is what was worked out by hand, if it was; return "by hand" for the counts."""
    if by_hand is None:
        return ()
    found = number(value)
    assert found is not None and abs(found - by_hand) <= by_hand * _ROUNDED, (
        f"{what}: {value}, by hand {float(by_hand)}"
    )
    return ("by hand",)


def nothing_fits(what: str, document: Mapping[str, Any]) -> None:
    """Assert that no schedule of a document fits its memory."""
    best = exact(document)
    assert best is None or best.most is None, f"{what}: {float(best.most)} is possible"


def cells_hold(
    words: Sequence[str],
    cells: Sequence[Cell],
    rows: Sequence[Mapping[str, Any]],
    best: Callable[[Cell], Exact | None],
) -> list[str]:
    """Return what is wrong about the rows of a sweep by the options `words`, of the cells that were searched."""
    seen = list[str]()
    for cell, row in zip(cells, rows, strict=True):
        if not cell.refused and row["status"] in ("optimal", "feasible", "infeasible", "unknown"):
            seen += holds(f"sweep {' '.join(words)} at {row['at']}", row, best(cell))
    return seen
