"""The table of a sweep: each cell with its outcome, also as plain data for programs and reports."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from typing import Any

from pipesched.layers.plan_problem import PlanProblem
from pipesched.problem.problem import Problem
from pipesched.results.solution import Status
from pipesched.results.tabular import Tabular
from pipesched.sweeps.cells import Cell, Sweep
from pipesched.sweeps.outcome import Outcome, PublishedResult


class State(StrEnum):
    """The state of a cell of a sweep: the statuses of a solution, and others.

    `OPTIMAL`, `FEASIBLE`, `INFEASIBLE`, `UNKNOWN` are those of `Status`. `REFUSED`: the cell's values do not go
    together. `FAILED`: no answer was received; it is tried again next time. `WAITING`: not yet solved.
    """

    OPTIMAL = "optimal"
    FEASIBLE = "feasible"
    INFEASIBLE = "infeasible"
    UNKNOWN = "unknown"
    REFUSED = "refused"  # its values do not go together
    FAILED = "failed"  # no answer came back; it is tried again next time
    WAITING = "waiting"


@dataclass(frozen=True)
class Row:
    """A cell and its outcome, None if it is refused, was not solved, or its search failed (`failure` is the reason)."""

    cell: Cell
    outcome: Outcome | None = None
    failure: str = ""

    @property
    def state(self) -> State:
        if self.cell.refused:
            return State.REFUSED
        if self.outcome is not None:
            return State(self.outcome.status.value)
        return State.FAILED if self.failure else State.WAITING

    @property
    def reason(self) -> str:
        """The reason why there is no schedule; empty if there is one, or the cell is waiting."""
        if self.cell.refused:
            return "; ".join(self.cell.refused.split("\n"))
        return self.failure if self.outcome is None else self.outcome.reason

    @property
    def value(self) -> Fraction | None:
        return None if self.outcome is None else self.outcome.value

    @property
    def lower_bound(self) -> Fraction | None:
        return None if self.outcome is None else self.outcome.lower_bound

    @property
    def free(self) -> Fraction | None:
        """The free memory that the best schedule leaves; None without a schedule, or if the objective is another.

        It is in the file's unit of memory, the least of all devices, or per layer where that is maximised.
        """
        return None if self.outcome is None or self.outcome.free is None else self.outcome.free.value

    @property
    def objective(self) -> str:
        """The objective of the cell; empty if its values are refused."""
        return "" if self.cell.refused else self.cell.problem.objective.name

    @property
    def best_published(self) -> PublishedResult | None:
        return None if self.outcome is None else self.outcome.best_published

    @property
    def ratio(self) -> Fraction | None:
        """The value of the best published schedule that fits, divided by the best value found; None if one is missing.

        It is 1 where a published one is as good; None also if the value found is 0.
        """
        best = self.best_published
        if best is None or best.value is None or not self.value:
            return None
        return best.value / self.value

    def record(self) -> dict[str, Any]:
        """Return the cell's values by field, then its figures by name, from `status` to `idle_ratio`, and `reason`.

        `best_published` is a name, `ratio` its value divided by the cell's. Numbers are floats in the file's units,
        None where unknown. `free_memory` is there only where it is maximised.
        """
        known, best = self.document(), self.best_published
        names = ("status", "objective", "value", "lower_bound", "gap", "makespan", "span", "idle_ratio")
        figures = {name: known[name] for name in names}
        if self.free is not None:
            figures["free_memory"] = float(self.free)
        published = {"best_published": None if best is None else best.name, "ratio": known["ratio"]}
        return {**known["at"], **figures, **published, "reason": self.reason}

    def document(self) -> dict[str, Any]:
        """Return the cell as a JSON object, in the file's units as floats; None for what is not known.

        `cell` is its number, `at` has its values by axis. Value and bound are there a second time as exact text, under
        `value_exact` and `lower_bound_exact`. `best_heuristic` is the best of `published` that fits, `ratio` its value
        divided by the cell's. The other keys are those of `solve --json`, and `finished`.
        """
        known = self.outcome
        document: dict[str, Any] = {
            "cell": self.cell.number,
            "at": {name: _plain(value) for name, value in self.cell.at},
            "status": self.state.value,
            "objective": self.objective,
            "value": _number(self.value),
            "value_exact": None if self.value is None else str(self.value),
            "lower_bound": _number(self.lower_bound),
            "lower_bound_exact": None if self.lower_bound is None else str(self.lower_bound),
            "gap": None if known is None else known.gap,
            "makespan": None,
            "span": None,
            "period": None,
            "bubble": None,
            "idle": None,
            "idle_ratio": None,
            "peak_memory": None,
            "certificate": None,
            "best_heuristic": None,
            "ratio": _number(self.ratio),
            "published": [],
            "finished": known is not None and known.finished,
            "wall_seconds": None if known is None else round(known.wall_seconds, 3),
            "reason": self.reason,
        }
        return document | ({} if known is None else _known(known))


@dataclass(frozen=True, repr=False)
class Table(Tabular):
    """The cells of a sweep, each with a row in `rows`.

    A row has no outcome if the values of its cell do not go together, its search failed, or it was not searched yet.

    `solved` is the number of cells whose search ended in this run, without those that failed or were interrupted.
    `read` is the number of cells that needed no search, since their outcomes were already in the store. `interrupted`
    is True if the sweep was stopped before every cell was solved or had failed. `not_stored` is the error that ended it
    because the store could not be written, as on a full disk: the last rows are in the table alone. Empty if there was
    none.
    """

    sweep: Sweep
    rows: tuple[Row, ...]
    solved: int = 0
    read: int = 0
    interrupted: bool = False
    not_stored: str = ""

    def summary(self) -> str:
        """Return a line: the name of the sweep, the number of its cells, and how many are in each state that occurs."""
        counts = [(state.value, self.count(state)) for state in State]
        cells = ", ".join(f"{number} {name}" for name, number in counts if number)
        return f"{self.sweep.name!r}: {len(self.rows)} cells, {cells}"

    def records(self) -> list[dict[str, Any]]:
        """Return a row for each cell, in the order of the sweep: `Row.record`, and the share `above_least`, or None."""
        above = self.above_least
        return [row.record() | {"above_least": _number(above.get(row.cell.number))} for row in self.rows]

    @property
    def first(self) -> Problem | PlanProblem:
        """The first valid problem of the sweep; units are the same in all."""
        return next(row.cell.problem for row in self.rows if not row.cell.refused)

    @property
    def time_unit(self) -> str:
        return self.first.time_unit

    @property
    def memory_unit(self) -> str:
        first = self.first
        return first.memory_unit if isinstance(first, Problem) else first.cluster.memory_unit

    def count(self, *states: State) -> int:
        """Return the number of cells in one of these states."""
        return sum(row.state in states for row in self.rows)

    @property
    def above_least(self) -> dict[int, Fraction]:
        """The share by which the value of each cell is above the least value of all, by number of the cell.

        It is 0 for the least; only cells with a value have an entry. Empty if objectives differ. Where free memory is
        maximised before the time, only cells that leave the most have an entry.
        """
        most = max((row.free for row in self.rows if row.free is not None), default=None)
        known = (row for row in self.rows if row.value is not None and row.free == most)
        values = {row.cell.number: self._of_batch(row) for row in known}
        least = min(values.values(), default=Fraction(0))
        if not least or len({row.objective for row in self.rows if row.value is not None}) > 1:
            return {}
        return {number: value / least - 1 for number, value in values.items()}

    def _of_batch(self, row: Row) -> Fraction:
        """Return the value of a cell that has one.

        In a sweep over one batch, a period becomes the time of all micro-batches, whose number differs between cells.
        """
        value = row.value or Fraction(0)
        problem = row.cell.problem
        return value * problem.microbatches if self.sweep.of_batch and problem.objective.repeats else value

    def document(self) -> dict[str, Any]:
        """Return the object of `sweep --json`: the changing fields with their values, and each cell's outcome.

        `axes` are `Axis.document`; `cells`, in the order of the sweep, are `Row.document` with the share `above_least`,
        None where it is not known. `solved` and `read` are numbers of cells, solved by this run and read from the
        store. `kind` is "plans" or "problems"; the units, `name`, `same_model` and `interrupted` are those of the
        sweep.
        """
        above = self.above_least
        return {
            "name": self.sweep.name,
            "kind": "plans" if self.sweep.of_plans else "problems",
            "time_unit": self.time_unit,
            "memory_unit": self.memory_unit,
            "same_model": self.sweep.axes.same_model,
            "axes": [axis.document() for axis in self.sweep.axes.axes],
            "cells": [row.document() | {"above_least": _number(above.get(row.cell.number))} for row in self.rows],
            "solved": self.solved,
            "read": self.read,
            "interrupted": self.interrupted,
        }


def _known(known: Outcome) -> dict[str, Any]:
    best = known.best_published
    times = {name: _number(getattr(known, name)) for name in ("makespan", "span", "period")}
    document: dict[str, Any] = times | {
        "bubble": None if known.bubble is None else dict(known.bubble),
        "idle": None if known.bubble is None else {of: known.idle(of) for of in known.bubble},
        "idle_ratio": known.idle_ratio,
        "peak_memory": [float(one) for one in known.peak_memory] or None,
        "certificate": {"kind": known.kind, "text": known.claim} if known.kind else None,
        "best_heuristic": None if best is None else {"name": best.name, "value": _number(best.value)},
        "published": [
            {
                "name": one.name,
                "fits": one.fits,
                "value": _number(one.value),
                "makespan": _number(one.makespan),
                "span": _number(one.span),
                "memory": _number(one.memory),
                "reason": one.reason,
            }
            for one in known.published
        ],
        "notes": list(known.notes),
    }
    document |= {} if known.free is None else {"free_memory": known.free.document()}
    return document | ({"choice": dict(known.choice)} if known.choice else {})


def _number(value: Fraction | None) -> float | None:
    return None if value is None else float(value)


def _plain(value: object) -> object:
    """Return a value of an axis for JSON: keys as text, numbers other than int as floats, tuples as lists."""
    if isinstance(value, Mapping):
        return {str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    return value if isinstance(value, str | int | bool | None) else float(value)  # type: ignore[arg-type]


# A status of a solution is a state of its cell.
assert {one.value for one in Status} <= {one.value for one in State}
