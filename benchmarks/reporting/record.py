"""The record of one solve of a benchmark: figures in the problem's own unit, and when each was reached."""

from __future__ import annotations

import sys
from dataclasses import asdict, dataclass
from time import perf_counter

from pipesched.errors import PipeschedError
from pipesched.problem.problem import Problem
from pipesched.results.solution import Solution
from solver.engine.engine import ENGINE
from solver.engine.search import Engine
from solver.limits import Limits
from solver.solve import solve

# Seconds, value (None before the first schedule) and lower bound, at every moment that one of the two improved.
Moment = tuple[float, float | None, float]


@dataclass(frozen=True)
class Record:
    """One row's result; times of the problem in `unit`, times of the search in seconds, gaps as fractions.

    `published` is the value of the best published schedule that fits, and `by` its name. `settings` are those the
    result depends on; `parts` are the parts of the engine that ran, with their seconds.
    """

    name: str
    settings: dict[str, float]
    status: str
    unit: str
    wall: float
    value: float | None = None
    bubble: float | None = None
    bound: float = 0.0
    gap: float | None = None
    proved_by: str = ""
    history: tuple[Moment, ...] = ()
    published: float | None = None
    by: str = ""
    parts: tuple[tuple[str, float], ...] = ()
    error: str = ""

    @property
    def proof(self) -> float | None:
        """When the proof of optimality was there."""
        return self.seconds_to(0) if self.status == "optimal" else None

    def seconds_to(self, wanted: float) -> float | None:
        """When the certified gap first was at most `wanted`; None if it never was."""
        near = wanted * (1 + 1e-9)  # the history is in rounded units
        return next((s for s, value, bound in self.history if value and (value - bound) / value <= near), None)

    def document(self) -> dict[str, object]:
        """The record as JSON's objects."""
        return asdict(self)


def record_of(document: dict[str, object]) -> Record:
    """Read `Record.document` back."""
    pairs = {name: document.get(name, []) for name in ("history", "parts")}
    assert all(isinstance(given, list) for given in pairs.values())
    known = {name: value for name, value in document.items() if name in Record.__dataclass_fields__}
    return Record(**(known | {name: tuple(map(tuple, given)) for name, given in pairs.items()}))  # type: ignore


def settings_of(limits: Limits) -> dict[str, float]:
    """Settings on which a result depends, besides the problem and the engine."""
    units = {} if limits.deterministic is None else {"units": limits.deterministic}
    return {"seconds": limits.seconds, "workers": limits.workers, "seed": limits.seed} | units


def record(name: str, solution: Solution, limits: Limits) -> Record:
    """The figures of a solution, read off once."""
    published = min(
        ((c.value, c.name) for c in solution.candidates if c.fits and c.value is not None), default=(None, "")
    )
    return Record(
        name=name,
        settings=settings_of(limits),
        status=solution.status.value,
        unit=solution.problem.time_unit,
        value=solution.value,
        bubble=solution.bubble_rate,
        bound=solution.lower_bound,
        gap=solution.gap,
        wall=solution.wall_seconds,
        proved_by="" if solution.certificate is None else solution.certificate.kind,
        history=tuple(
            (m.seconds, None if m.value is None else float(m.value), float(m.lower_bound)) for m in solution.history
        ),
        published=published[0],
        by=published[1],
        parts=tuple((name, round(seconds, 3)) for name, seconds in solution.parts),
    )


def measured(problem: Problem, limits: Limits, engine: Engine = ENGINE) -> Record:
    """One solve. One that breaks is a result too: a defect of this tool, which the table shows."""
    started = perf_counter()
    try:
        return record(problem.name, solve(problem, limits, engine=engine), limits)
    except (PipeschedError, ArithmeticError, LookupError, ValueError, AssertionError) as error:
        text = f"{type(error).__name__}: {error}"
        print(f"{problem.name}: {text}", file=sys.stderr)
        seconds = perf_counter() - started
        return Record(problem.name, settings_of(limits), "failed", problem.time_unit, seconds, error=text)
