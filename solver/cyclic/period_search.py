"""Search for the minimum period of a block graph: CP-SAT at decreasing lengths, for one or more micro-batches."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from fractions import Fraction
from math import ceil
from threading import Event

from formulations.cyclic.block_graph import BlockGraph
from formulations.cyclic.pattern import Pattern
from formulations.cyclic.periodic_model import PeriodicModel
from formulations.cyclic.sequential_pattern import sequential_pattern
from pipesched.errors import defect_note, left_out_note
from pipesched.problem.quantities import Ticks
from solver.backends.cp_sat import Parameters, solve_model
from solver.limits import Limits
from solver.parameters import tunable, tuned


@dataclass(frozen=True)
@tunable
class PeriodSearchParams:
    """Effort and precision of CP-SAT at decreasing lengths of the period."""

    first_seconds: float = tuned(1.0, "s, or units of counted work, for one call in the first round", 0.01, 100)
    growth: float = tuned(3.0, "times as long for a call in each later round", 1, 10)
    most_copies: int = tuned(4, "micro-batches of each chain in one period", 1, 64)
    near: float = tuned(0.001, "of the period: lengths closer than this are not told apart", 0, 0.1)


_PARAMS = PeriodSearchParams()


class Verdict(Enum):
    """CP-SAT's answer to the question if some pattern of so many copies repeats within a given length.

    `FOUND`: yes. `NONE`: proved that none does. `OPEN`: neither, as a limit was reached first or the model failed.
    """

    FOUND = "found"
    NONE = "none"  # no pattern of so many copies is as short
    OPEN = "open"


@dataclass(frozen=True)
class PeriodSolution:
    """The best pattern found, and the proved bound on the period; `period` and `bound` are in ticks per micro-batch.

    `pattern`, and with it `period`, is None if none was found, whether or not one fits the memory. `refuted[k]` is the
    greatest length, in ticks, that CP-SAT proved too short for patterns of k micro-batches of each chain: a proof about
    those patterns alone, not about the period. `notes` report defects in parts of the search; the results of these
    parts are left out. `seconds` is the time that the search took.
    """

    pattern: Pattern | None
    bound: Fraction
    seconds: float
    refuted: dict[int, Ticks] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def period(self) -> Fraction | None:
        return None if self.pattern is None else self.pattern.period


def best_pattern(
    graph: BlockGraph,
    bound: Fraction,
    limits: Limits,
    known: Sequence[Pattern] = (),
    stop: Event | None = None,
    on_progress: Callable[[Pattern], None] = lambda _: None,
) -> PeriodSolution:
    """Return the pattern of least period that CP-SAT finds within the limits; no pattern if none found fits the memory.

    `bound` is a proved lower bound in ticks per micro-batch; a pattern that contradicts it makes it 0, with a note. The
    search starts from the patterns in `known`, and from the one in which micro-batches run one after the other.
    `on_progress` is called with every better pattern, known ones included. Setting `stop` ends the search with the best
    so far.
    """
    search = _Search(graph, bound, limits, stop or Event(), on_progress)
    for pattern in (sequential_pattern(graph), *known):
        if pattern.fits():
            search.offer(pattern)
    search.run()
    return PeriodSolution(search.best, search.bound, search.seconds, dict(search.refuted), tuple(search.notes))


class _Search:
    """Bisection of the length of a period, for each number of copies, in rounds of growing effort.

    Copies are micro-batches of each chain in the period. `best` is the best pattern (None: none yet), `bound` the
    proved bound in ticks per micro-batch; `refuted[k]` is the greatest length in ticks refuted for k copies. `run`
    makes the search, `offer` keeps a pattern if it is shorter than the best, and `done` is True when nothing is left to
    try.
    """

    def __init__(
        self, graph: BlockGraph, bound: Fraction, limits: Limits, stop: Event, on_progress: Callable[[Pattern], None]
    ) -> None:
        self.graph, self.bound, self.limits, self.stop, self.on_progress = graph, bound, limits, stop, on_progress
        self.started, self.spent = time.monotonic(), 0.0
        self.best: Pattern | None = None
        self.refuted: dict[int, int] = {}
        self.notes: list[str] = []
        self._failed = False

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.started

    @property
    def left(self) -> float:
        """Return what is left of the limit: seconds, or CP-SAT's deterministic units where work is counted."""
        if self.limits.deterministic is not None:
            return self.limits.deterministic - self.spent
        return max(0.0, self.limits.seconds - self.seconds)

    def offer(self, pattern: Pattern) -> None:
        """Keep a pattern, and call `on_progress` with it, if it is shorter than the best.

        If its period is below the bound, the bound is wrong: it is dropped and the defect noted.
        """
        if pattern.period < self.bound:
            text = f"a pattern of {pattern.period} ticks is below the bound of {self.bound}, which is left out"
            self.notes.append(defect_note(text))
            self.bound = Fraction(0)
        if self.best is None or pattern.period < self.best.period:
            self.best = pattern
            self.on_progress(pattern)

    def done(self) -> bool:
        reached = self.best is not None and self.best.period - self.bound <= self.limits.gap * self.best.period
        return reached or self._failed or self.stop.is_set() or self.left <= 0

    def run(self) -> None:
        effort = _PARAMS.first_seconds
        while not self.done():
            settled = True
            for copies in range(1, _PARAMS.most_copies + 1):
                settled &= self._bisect(copies, effort)
                if self.done():
                    return
            if settled:
                return
            effort *= _PARAMS.growth

    def _longest(self, copies: int) -> Ticks:
        """Return the greatest length in ticks worth a try for a period with `copies` micro-batches of each chain.

        It is just less than that of the best known pattern; without one, a length in which any micro-batches can repeat
        one after another.
        """
        if self.best is not None:
            return ceil(self.best.period * copies * self.graph.microbatches) - 1
        blocks, waits = self.graph.blocks, self.graph.waits
        fused = sum(max(0, f.ticks - blocks[f.backward].ticks) for f in self.graph.fusions)
        return copies * (sum(b.ticks for b in blocks) + sum(w.lag for w in waits) + fused)

    def _bisect(self, copies: int, effort: float) -> bool:
        """Try lengths of a period with `copies` micro-batches of each chain.

        The bound is first. Patterns get shorter and shorter. Returns True if CP-SAT decided every length tried;
        `effort` is the limit of one call, in seconds or counted work.
        """
        each = copies * self.graph.microbatches
        low = max(ceil(self.bound * each), self.refuted.get(copies, -1) + 1)
        length = low
        settled = True
        while not self.done():
            high = self._longest(copies)
            if low > high or (self.best is not None and high - low < _PARAMS.near * low):
                break
            answer = self._attempt(copies, min(length, high), effort)
            if answer is Verdict.NONE:
                self.refuted[copies] = max(self.refuted.get(copies, -1), min(length, high))
            settled &= answer is not Verdict.OPEN
            if answer is not Verdict.FOUND:
                low = min(length, high) + 1
            high = self._longest(copies)
            length = (low + high) // 2 if self.best is not None else min(high, low * 5 // 4)
        return settled

    def _attempt(self, copies: int, length: Ticks, effort: float) -> Verdict:
        """Ask CP-SAT for a pattern of `copies` micro-batches of each chain in at most `length` ticks.

        Keep it if it is better. Returns `FOUND` for a pattern within the length, `NONE` if it proves that there is
        none, else `OPEN`. `effort` is the limit, in seconds or counted work.
        """
        if length < 1:
            return Verdict.NONE
        most = max(0.01, min(effort, self.left))
        work = None if self.limits.deterministic is None else most
        try:
            model = PeriodicModel(self.graph, copies, length)
            if self.best is not None and self.best.copies == copies:
                model.hint(self.best)
            answer = solve_model(
                model.cp, Parameters(most, work, self.limits.seed, workers=self.limits.workers), self.stop
            )
        except Exception as error:
            self.notes.append(left_out_note("the periodic model", error))
            self._failed = True  # the next length may fail in the same way
            return Verdict.OPEN
        self.spent += answer.work
        if answer.has_solution:
            pattern = model.decode(answer.value_of)
            if not pattern.fits():
                text = "CP-SAT gave a pattern that holds more than the memory, which was dropped"
                self.notes.append(defect_note(text))
                return Verdict.OPEN
            self.offer(pattern)
            if pattern.length > length:
                # Passes of zero duration may be in an order that takes longer once it has to run in turn.
                return Verdict.OPEN
            return Verdict.FOUND
        return Verdict.NONE if answer.infeasible else Verdict.OPEN
