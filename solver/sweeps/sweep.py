"""`sweep` in Python: solve a file, a document or a problem for all combinations of values of its fields."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event
from typing import Any

from pipesched.arguments import refuse_other
from pipesched.files.problems.document import problem_document
from pipesched.problem.problem import Problem
from pipesched.sweeps.cells import Sweep, read_sweep, sweep_of, with_values
from pipesched.sweeps.store import Store
from pipesched.sweeps.table import Table
from solver.limits import Limits, limits_from
from solver.sweeps.executor import Executor, InTurn
from solver.sweeps.process_pool import ProcessPool
from solver.sweeps.run_sweep import Options, Report, run_sweep

_ALLOWED = "the path of a problem file or a plan file, its document as a dictionary, or a Problem"


def sweep(
    model: str | Path | Mapping[str, Any] | Problem,
    values: Mapping[str, object] | None = None,
    limits: Limits | None = None,
    *,
    seconds: float | None = None,
    jobs: int = 1,
    store: str | Path | None = None,
    same_model: bool = False,
    report: Report | None = None,
    stop: Event | None = None,
) -> Table:
    """Solve every cell of the product of these values: `sweep("plan.yaml", {"devices": [4, 8]}, seconds=10)`.

    `values` are written as in the `sweep` section of a file, and are added to it. Limits apply to each cell (60 s if
    none are given), and `seconds` replaces their time; `jobs` cells run at a time (more than one in a script needs `if
    __name__ == "__main__":`). Cells found in the file `store` are not solved again, and new results are added to it.
    With `same_model` cells with more stages have the same model in smaller stages. `report` is called with a `Moment`
    at the beginning and whenever a cell ends; setting `stop` ends the sweep with what was found. So does a store that
    can no longer be written (`Table.not_stored`). Raises `BadInput` for wrong arguments, fields, files or limits, and
    if no cell is a valid problem.
    """
    refuse_other("sweep", model, (str, Path, Mapping, Problem), _ALLOWED)
    limits, stop = limits_from("sweep", limits, seconds), stop or Event()
    cells = _sweep(model, values, same_model)
    with _stored(store) as known, _executor(jobs, stop) as executor:
        return run_sweep(cells, known, executor, Options(limits), report, stop)


def _sweep(
    model: str | Path | Mapping[str, Any] | Problem, values: Mapping[str, object] | None, same_model: bool
) -> Sweep:
    if isinstance(model, str | Path):
        return read_sweep(model, same_model=same_model, values=values)
    document = problem_document(model) if isinstance(model, Problem) else model
    return sweep_of(with_values(document, values), same_model=same_model)


@contextmanager
def _stored(path: str | Path | None) -> Iterator[Store]:
    """Context with the store of outcomes at a path, or with a temporary one without a path."""
    if path is not None:
        with Store(path) as store:
            yield store
        return
    with TemporaryDirectory() as folder, Store(Path(folder) / "sweep.sqlite") as store:
        yield store


@contextmanager
def _executor(jobs: int, stop: Event) -> Iterator[Executor]:
    executor: Executor = InTurn(stop) if jobs == 1 else ProcessPool(jobs)
    try:
        yield executor
    finally:
        executor.close()
