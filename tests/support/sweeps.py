"""Sweeps and outcomes for tests, made without a search."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from pipesched.results.solution import Status
from pipesched.sweeps.cells import Sweep, sweep_of
from pipesched.sweeps.outcome import Effort, Outcome, PublishedResult
from pipesched.sweeps.table import Row, Table

TINY: dict[str, Any] = {
    "devices": 2,
    "microbatches": 3,
    "time_unit": "ms",
    "times": {"forward": 2, "backward": 2, "weight": 1},
    "memory": {"unit": "GiB", "capacity": 2},
}


def hard() -> dict[str, Any]:
    """A problem that is far from its bound for longer than any test waits."""
    forward, backward = [7, 11, 13, 9, 8, 12, 10, 6], [9, 12, 7, 14, 10, 8, 13, 11]
    return {
        "devices": 4,
        "microbatches": 12,
        "placement": "v-shape",
        "times": {"forward": forward, "backward": backward, "weight": 5, "transfer": 0.3},
        "memory": {"capacity": 5.4, "activation": 1, "freed_by_backward": 0.3},
        "objective": "span",
    }


EFFORT = Effort(5.0, 1, 0, 0.0)


def outcome(value: float | None, bound: float | None = None, **more: Any) -> Outcome:
    """The outcome of a cell of a sweep; with no bound given it is optimal."""
    if value is None:
        return Outcome(Status.INFEASIBLE, EFFORT, reason="memory: too little", **more)
    exact, lower_bound = Fraction(str(value)), Fraction(str(value if bound is None else bound))
    status = Status.OPTIMAL if exact == lower_bound else Status.FEASIBLE
    known = {
        "makespan": exact,
        "span": exact,
        "work": exact / 2,
        "bubble": {"makespan": 0.5, "span": 0.5},
        "peak_memory": (Fraction(2), Fraction(1)),
    }
    return Outcome(status, EFFORT, exact, lower_bound, "load", "a device works so long", **(known | more))


def published(name: str, value: float, memory: float, fits: bool = True) -> PublishedResult:
    """A published schedule in a cell."""
    time = Fraction(str(value))
    return PublishedResult(name, fits, time, time, time, Fraction(str(memory)))


def sweep(*options: str, document: dict[str, Any] | None = None, same_model: bool = False) -> Sweep:
    """Return the sweep of a document, by default a tiny problem, with these options of `--set`."""
    return sweep_of(document or TINY, options, same_model)


def table(of: Sweep, outcomes: Sequence[Outcome | None]) -> Table:
    """Return the table of a sweep with these outcomes of its cells, in order (None: not solved)."""
    return Table(of, tuple(Row(cell, known) for cell, known in zip(of.cells, outcomes, strict=True)))
