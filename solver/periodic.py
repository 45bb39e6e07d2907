"""The shortest period of a block graph: CP-SAT asked for ever shorter patterns of one or more micro-batches."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from fractions import Fraction
from math import ceil
from threading import Event

from ortools.sat.python import cp_model

from formulations.blocks import BlockGraph
from formulations.periodic import PeriodicModel
from formulations.periodic_pattern import Pattern, in_turn
from pipesched.errors import Disagreement
from solver.interruptible import run_until
from solver.limits import Limits

# Micro-batches a repetition may hold. Beyond four, CP-SAT finds little in seconds that a reading did not give.
_COPIES = (1, 2, 3, 4)
# Lengths closer than this share of the bound are not told apart.
_FINE = Fraction(1, 1000)
# Seconds of the first attempt at a length, and CP-SAT's own units where these count.
_FIRST_TRY = 0.5


class Answer(Enum):
    """What CP-SAT says of a length."""

    FOUND = "found"
    NONE = "none"  # no pattern of so many copies is as short
    OPEN = "open"


@dataclass(frozen=True)
class PeriodSolution:
    """The best pattern found; `period` and `bound` in ticks per micro-batch.

    `refuted[k]` is a length in ticks of which CP-SAT proved that no pattern of k copies repeats in it: a proof about
    patterns of k copies alone, not about the period.
    """

    pattern: Pattern | None
    bound: Fraction
    seconds: float
    refuted: dict[int, int] = field(default_factory=dict)

    @property
    def period(self) -> Fraction | None:
        return None if self.pattern is None else self.pattern.period


def best_pattern(
    graph: BlockGraph,
    bound: Fraction,
    limits: Limits,
    known: Sequence[Pattern] = (),
    stop: Event | None = None,
    hear: Callable[[Pattern], None] = lambda _: None,
) -> PeriodSolution:
    """The pattern of least period found within the limits; `bound` is proved, in ticks per micro-batch."""
    search = _Search(graph, bound, limits, stop or Event(), hear)
    for pattern in (in_turn(graph), *known):
        if pattern.fits():
            search.offer(pattern)
    search.run()
    return PeriodSolution(search.best, bound, search.seconds, dict(search.refuted))


class _Search:
    """Bisection for each number of copies, in rounds that try for longer and longer."""

    def __init__(
        self, graph: BlockGraph, bound: Fraction, limits: Limits, stop: Event, hear: Callable[[Pattern], None]
    ) -> None:
        self.graph, self.bound, self.limits, self.stop, self.hear = graph, bound, limits, stop, hear
        self.started, self.spent = time.monotonic(), 0.0
        self.best: Pattern | None = None
        self.refuted: dict[int, int] = {}

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.started

    @property
    def left(self) -> float:
        """What is left of the limit: seconds, or CP-SAT's own units."""
        if self.limits.deterministic is not None:
            return self.limits.deterministic - self.spent
        return self.limits.seconds - self.seconds

    def offer(self, pattern: Pattern) -> None:
        """Keep a pattern if it is shorter."""
        if pattern.period < self.bound:
            raise Disagreement(f"a pattern of {pattern.period} ticks is below the bound of {self.bound}")
        if self.best is None or pattern.period < self.best.period:
            self.best = pattern
            self.hear(pattern)

    def done(self) -> bool:
        reached = self.best is not None and self.best.period - self.bound <= self.limits.gap * self.best.period
        return reached or self.stop.is_set() or self.left <= 0

    def run(self) -> None:
        effort = _FIRST_TRY
        while not self.done():
            settled = True
            for copies in _COPIES:
                settled &= self._bisect(copies, effort)
                if self.done():
                    return
            if settled:
                return
            effort *= 3

    def _longest(self, copies: int) -> int:
        """Just below what is known, or a length in which any micro-batches can repeat one after another."""
        if self.best is not None:
            return ceil(self.best.period * copies * self.graph.microbatches) - 1
        blocks, waits = self.graph.blocks, self.graph.waits
        fused = sum(max(0, f.ticks - blocks[f.backward].ticks) for f in self.graph.fusions)
        return copies * (sum(b.ticks for b in blocks) + sum(w.lag for w in waits) + fused)

    def _bisect(self, copies: int, effort: float) -> bool:
        """Shorter and shorter lengths, the bound first; whether all that are open have been refuted."""
        each = copies * self.graph.microbatches
        low = max(ceil(self.bound * each), self.refuted.get(copies, -1) + 1)
        length = low
        settled = True
        while not self.done():
            high = self._longest(copies)
            if low > high or (self.best is not None and high - low < _FINE * low):
                break
            answer = self._attempt(copies, min(length, high), effort)
            if answer is Answer.NONE:
                self.refuted[copies] = max(self.refuted.get(copies, -1), min(length, high))
            settled &= answer is not Answer.OPEN
            if answer is not Answer.FOUND:
                low = min(length, high) + 1
            high = self._longest(copies)
            length = (low + high) // 2 if self.best is not None else min(high, low * 5 // 4)
        return settled

    def _attempt(self, copies: int, length: int, effort: float) -> Answer:
        """One model: patterns of `length` ticks."""
        if length < 1:
            return Answer.NONE
        model = PeriodicModel(self.graph, copies, length)
        if self.best is not None and self.best.copies == copies:
            model.hint(self.best)
        solver = cp_model.CpSolver()
        parameters = solver.parameters
        parameters.num_workers = self.limits.workers
        parameters.random_seed = self.limits.seed
        parameters.cp_model_probing_level = 0
        parameters.catch_sigint_signal = False
        most = max(0.01, min(effort, self.left))
        if self.limits.deterministic is None:
            parameters.max_time_in_seconds = most
        else:
            parameters.max_deterministic_time = most
        status = run_until(self.stop, lambda: solver.solve(model.cp), solver.stop_search)
        self.spent += solver.response_proto.deterministic_time
        if status == cp_model.MODEL_INVALID:
            raise Disagreement(f"CP-SAT rejects the periodic model: {model.cp.validate()}")
        if status in (cp_model.OPTIMAL, cp_model.FEASIBLE):
            pattern = model.decode(solver.value)
            if not pattern.fits():
                raise Disagreement("CP-SAT gave a pattern that holds more than the memory")
            if pattern.length > length:
                raise Disagreement(f"CP-SAT claims {length} ticks for a pattern that takes {pattern.length}")
            self.offer(pattern)
            return Answer.FOUND
        return Answer.NONE if status == cp_model.INFEASIBLE else Answer.OPEN
