"""Export of a sweep's table as CSV and as Parquet, with a row for each cell."""

from __future__ import annotations

import csv
import io
from importlib.util import find_spec
from typing import Any

from pipesched.errors import BadInput
from pipesched.extras import to_install
from pipesched.files.plan_answer import answer_text
from pipesched.layers.plan_problem import PlanProblem
from pipesched.sweeps.cells import Cell
from pipesched.sweeps.outcome import Outcome
from pipesched.sweeps.packed import schedule_text
from pipesched.sweeps.plan_evidence import plan_answer_of
from pipesched.sweeps.table import Row, Table
from pipesched.sweeps.values import as_number, label

_FIGURES = ("makespan", "span", "period", "value", "lower_bound", "gap", "ratio", "idle_ratio", "wall_seconds")
_TEXTS = ("value_exact", "lower_bound_exact", "reason")


def columns(table: Table) -> dict[str, list[Any]]:
    """Return each column by name, with a value for each row of the table in its order, None where it has none.

    Numbers are floats, value and bound also exact text; `cell` is the cell's number, `peak_memory` the highest of its
    devices. An axis with only numbers is a column of floats, any other one of text; its name begins with `axis ` where
    it would be that of another column.
    """
    found: dict[str, list[Any]] = {"cell": [row.cell.number for row in table.rows]}
    for axis in table.sweep.axes.axes:
        values = [row.cell.place[axis.name] for row in table.rows]
        numbers = [as_number(value) for value in values]
        exact = all(number is not None for number in numbers)
        name = axis.name if axis.name not in _columns_of(table.rows[0]) else f"axis {axis.name}"
        found[name] = [float(n) for n in numbers if n is not None] if exact else [label(value) for value in values]
    rows = [_columns_of(row) for row in table.rows]
    above = [table.above_least.get(row.cell.number) for row in table.rows]
    shares = [None if share is None else float(share) for share in above]
    return found | {name: [row[name] for row in rows] for name in rows[0]} | {"above_least": shares}


def to_csv(table: Table) -> str:
    """Return the table as CSV, with a line of column names first; a missing value is empty."""
    found = columns(table)
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(found)
    for row in zip(*found.values(), strict=True):
        writer.writerow(["" if value is None else value for value in row])
    return out.getvalue()


def to_parquet(table: Table) -> bytes:
    """Return the table as Parquet, made by Apache Arrow; `BadInput` if that is not installed."""
    refuse_without_parquet()
    import pyarrow
    from pyarrow import parquet

    found = columns(table)
    text = pyarrow.string()
    empty = {name for name, values in found.items() if all(value is None for value in values)}
    kinds = {name: text if name in _TEXTS else pyarrow.float64() for name in empty}
    arrays = {name: pyarrow.array(values, type=kinds.get(name)) for name, values in found.items()}
    sink = io.BytesIO()
    parquet.write_table(pyarrow.table(arrays), sink)
    return sink.getvalue()


def refuse_without_parquet() -> None:
    """Raise `BadInput` if pyarrow, which writes Parquet, is not installed; called before a long search."""
    if find_spec("pyarrow") is None:
        allowed = f"after {to_install('pipesched[parquet]')}"
        raise BadInput(f"--parquet: found no pyarrow, which writes Parquet; allowed: {allowed}")


def _columns_of(row: Row) -> dict[str, Any]:
    document = row.document()
    best, peaks = document["best_heuristic"] or {}, document["peak_memory"]
    bubble, idle = document["bubble"] or {}, document["idle"] or {}
    return {
        "status": document["status"],
        "objective": document["objective"],
        **{name: document[name] for name in (*_FIGURES, *_TEXTS[:2])},
        "bubble_makespan": bubble.get("makespan"),
        "bubble_span": bubble.get("span"),
        "idle_makespan": idle.get("makespan"),
        "idle_span": idle.get("span"),
        "peak_memory": max(peaks) if peaks else None,
        "certificate": (document["certificate"] or {}).get("kind"),
        "best_heuristic": best.get("name"),
        "best_heuristic_value": best.get("value"),
        "finished": document["finished"],
        "reason": document["reason"] or None,
    }


def cell_texts(cell: Cell, known: Outcome) -> dict[str, str]:
    """Return the text of a cell's files by name: its schedule file, and for a plan its answer file with the evidence.

    The names are `cell-N.json` and `cell-N-plan.json`, with the cell's number. `BadInput` if the outcome has no
    schedule, or damaged evidence.
    """
    texts = {f"cell-{cell.number}.json": schedule_text(known)}
    answer = plan_answer_of(cell.problem, known) if isinstance(cell.problem, PlanProblem) else None
    return texts if answer is None else texts | {f"cell-{cell.number}-plan.json": answer_text(answer)}
