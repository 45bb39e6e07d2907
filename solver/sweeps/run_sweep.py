"""Run of a sweep: read the store, solve the other cells in parallel, and store each when it ends."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from threading import Event

from pipesched.errors import BadInput
from pipesched.sweeps.cells import Cell, Sweep
from pipesched.sweeps.outcome import Outcome
from pipesched.sweeps.store import Store
from pipesched.sweeps.table import Row, Table
from solver.limits import Limits
from solver.sweeps.executor import Ended, Executor, pause
from solver.sweeps.neighbours import Neighbours, by_memory
from solver.sweeps.solve_cell import Task

_POLL = 0.2  # seconds
_TRIES = 3  # of a cell whose process died
_LEAST_SECONDS = 0.5


@dataclass(frozen=True)
class Options:
    """Options of a sweep: `limits` of each cell, and `total` seconds for all cells, which they share (None: no limit).

    With `again`, cells whose gap is larger than that of `limits` are solved again if they now have more time than
    before. Cells that were interrupted are solved again in any case.
    """

    limits: Limits
    total: float | None = None
    again: bool = False


@dataclass(frozen=True)
class Moment:
    """Progress of a sweep: numbers of all cells, done ones and running ones, the seconds so far, and those left.

    Done are also the cells that were in the store, are no valid problem, or failed. `left` is an estimate, None before
    any cell is solved; `last` is the row of the last cell that ended, None at the beginning.
    """

    cells: int
    done: int
    running: int
    seconds: float
    left: float | None
    last: Row | None


Report = Callable[[Moment], None]


def run_sweep(
    sweep: Sweep,
    store: Store,
    executor: Executor,
    options: Options,
    report: Report | None = None,
    stop: Event | None = None,
) -> Table:
    """Return the table of all cells of a sweep; cells known to the store are read from it, others added to it.

    Rows are in the order of the sweep's cells. `report` is called with a `Moment` at the beginning and whenever a cell
    ends. Setting `stop` ends the sweep with the outcomes found so far. So does a store that can no longer be written:
    the table has the outcomes that it lacks, and says why. Raises `BadInput` if the store cannot be written at the
    beginning.
    """
    run = _Run(sweep, store, executor, options, report or (lambda _: None), stop or Event())
    run.all()
    return run.table()


class _Run:
    def __init__(
        self, sweep: Sweep, store: Store, executor: Executor, options: Options, report: Report, stop: Event
    ) -> None:
        self._sweep, self._store, self._executor, self._options = sweep, store, executor, options
        self._report, self._stop, self._began = report, stop, time.monotonic()
        store.enter(sweep)
        cells = [cell for cell in sweep.cells if not cell.refused]
        self._cells = {cell.key: cell for cell in reversed(cells)}
        self._known = store.known(self._cells)
        self._neighbours = Neighbours(cells, self._known)
        self._queue = _ordered([cell for cell in self._cells.values() if self._wanted(cell)])
        waiting = {cell.key for cell in self._queue}
        self._read = sum(cell.key not in waiting for cell in cells)
        self._failures: dict[str, str] = {}
        self._tries: Counter[str] = Counter()
        self._seconds: list[float] = []
        self._not_stored = ""

    @property
    def _ending(self) -> bool:
        """True if no further cell is begun: the user stopped the sweep, or the store cannot be written."""
        return self._stop.is_set() or bool(self._not_stored)

    def all(self) -> None:
        """Run all cells until none is left, or until the running ones have ended once no further cell is begun."""
        self._say(None)
        stopped = False
        while self._executor.running or (self._queue and not self._ending):
            while self._queue and not self._ending and len(self._executor.running) < self._executor.slots:
                self._submit(self._queue.pop(0))
            if self._ending and not stopped:
                stopped = True
                self._executor.stop()
            for ended in self._executor.ended(_POLL):
                self._take(ended)
            if not self._executor.running:
                pause(0)

    def table(self) -> Table:
        """Return the table of all cells of the sweep, with the outcomes so far."""
        over = {key for key, known in self._known.items() if known.finished} | self._failures.keys()
        rows = tuple(self._row(cell) for cell in self._sweep.cells)
        interrupted = self._ending and not self._cells.keys() <= over
        return Table(self._sweep, rows, len(self._seconds), self._read, interrupted, self._not_stored)

    def _row(self, cell: Cell) -> Row:
        if cell.refused:
            return Row(cell)
        return Row(cell, self._known.get(cell.key), self._failures.get(cell.key, ""))

    def _wanted(self, cell: Cell) -> bool:
        """True if a cell is to be solved.

        A cell that was solved within the gap is not solved again; another one whose solve had ended only if `again` is
        set and it has more time now.
        """
        known = self._known.get(cell.key)
        if known is None or not known.finished:
            return True
        if known.solved_within(float(self._options.limits.gap)):
            return False
        return self._options.again and known.effort.seconds < self._options.limits.seconds

    def _submit(self, cell: Cell) -> None:
        limits = replace(self._options.limits, seconds=self._share())
        start, floor = self._neighbours.start(cell), self._neighbours.floor(cell)
        self._tries[cell.key] += 1
        self._executor.submit(Task(cell.key, cell.document, cell.name, limits, start, floor))

    def _share(self) -> float:
        """Return the seconds for the next cell: the limit of a cell, or less if the time for all cells is short."""
        limit, total = self._options.limits.seconds, self._options.total
        if total is None:
            return limit
        left = total - (time.monotonic() - self._began)
        turns = max(1.0, (len(self._queue) + 1 + len(self._executor.running)) / self._executor.slots)
        return max(_LEAST_SECONDS, min(limit, left / turns))

    def _take(self, ended: Ended) -> None:
        """Store an ended cell's outcome and its consequences for neighbours, or record why it failed; report it.

        A cell whose process died is queued again, at most twice, and not reported until it ends.
        """
        cell = self._cells[ended.key]
        if ended.outcome is None:
            if ended.lost and self._tries[cell.key] < _TRIES and not self._ending:
                self._queue.insert(0, cell)
            else:
                self._failures[cell.key] = ended.failure
                self._say(self._row(cell))
            return
        self._keep(cell, ended.outcome)
        if ended.outcome.finished:
            self._seconds.append(ended.outcome.wall_seconds)
        self._say(self._row(cell))

    def _keep(self, cell: Cell, outcome: Outcome) -> None:
        self._known[cell.key] = self._stored(cell.key, outcome)
        for other, found in self._neighbours.settled(cell):
            self._known[other.key] = self._stored(other.key, found, solved=False)

    def _stored(self, key: str, outcome: Outcome, solved: bool = True) -> Outcome:
        """Store an outcome; return it merged with what is known of the cell, also if the store cannot be written.

        `key` is the cell's; `solved` is False for an outcome that follows from that of another cell.
        """
        try:
            return self._store.keep(key, outcome, solved)
        except BadInput as error:
            self._not_stored = self._not_stored or str(error)
            before = self._known.get(key)
            return outcome if before is None else before.merged(outcome)

    def _say(self, last: Row | None) -> None:
        waiting = len(self._queue) + len(self._executor.running)
        done = len(self._sweep.cells) - waiting
        running, passed = len(self._executor.running), time.monotonic() - self._began
        self._report(Moment(len(self._sweep.cells), done, running, passed, self._left(passed), last))

    def _left(self, passed: float) -> float | None:
        """Return an estimate of the seconds left after `passed` seconds, from the mean time of solved cells.

        None before any is solved.
        """
        if not self._seconds:
            return None
        waiting = len(self._queue) + len(self._executor.running)
        mean = sum(self._seconds) / len(self._seconds)
        left = waiting * mean / self._executor.slots
        return left if self._options.total is None else min(left, max(0.0, self._options.total - passed))


def _ordered(cells: Iterable[Cell]) -> list[Cell]:
    """Return the cells in the order in which they are solved, such that results of earlier ones help later ones.

    Of each family (cells that differ only in memory) the one with the most memory is first, then the others from the
    least memory up: the bound at the most memory is valid for all cells of the family, and the schedule at the least
    memory fits them all. The order alternates between families, so that a cell finds more of its own family solved.
    """
    families: dict[str, list[Cell]] = {}
    for cell in cells:
        families.setdefault(cell.family, []).append(cell)
    ranked: list[tuple[int, int, Cell]] = []
    for members in families.values():
        *others, most = sorted(members, key=by_memory)
        ranked += [(rank, cell.number, cell) for rank, cell in enumerate([most, *others])]
    return [cell for _, _, cell in sorted(ranked, key=lambda one: one[:2])]
