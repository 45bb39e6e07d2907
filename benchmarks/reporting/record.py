"""The record of one solve of a benchmark: figures in the problem's own unit, and when each was reached."""

from __future__ import annotations

import sys
from dataclasses import asdict, dataclass
from itertools import pairwise
from time import perf_counter

from pipesched.errors import PipeschedError
from pipesched.problem.problem import Problem
from pipesched.results.solution import Solution, Status
from solver.engine.engine import ENGINE
from solver.engine.search import Engine
from solver.limits import Limits
from solver.solve import solve

# Seconds, value (None before the first schedule) and lower bound, at every moment that one of the two improved.
Moment = tuple[float, float | None, float]


@dataclass(frozen=True)
class Record:
    """One row's result; times of the problem in `unit`, times of the search in seconds, gaps as fractions.

    `first`, `best` and `proof` are when the first and the best schedule and the proof of optimality were there; None
    where they never were. `greedy` is the Zero Bubble paper's search on the same problem in the same run,
    `published` the best published schedule that fits. `settings` are those the result depends on; `parts` are the parts
    of the engine that ran, with their seconds.
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
    first: float | None = None
    best: float | None = None
    proof: float | None = None
    proved_by: str = ""
    greedy: float | None = None
    history: tuple[Moment, ...] = ()
    published: float | None = None
    notes: tuple[str, ...] = ()
    parts: tuple[tuple[str, float], ...] = ()
    error: str = ""

    def document(self) -> dict[str, object]:
        """As JSON's objects."""
        return asdict(self)

    def seconds_to(self, wanted: float) -> float | None:
        """When the certified gap first was at most `wanted`; None if it never was."""
        near = wanted * (1 + 1e-9)  # the history is in rounded units
        return next((s for s, value, bound in self.history if value and (value - bound) / value <= near), None)


def record_of(document: dict[str, object]) -> Record:
    """Read `Record.document` back."""
    pairs = {name: document.get(name, []) for name in ("history", "parts")}
    assert all(isinstance(given, list) for given in pairs.values())
    known = {name: value for name, value in document.items() if name in Record.__dataclass_fields__}
    return Record(**(known | {name: tuple(map(tuple, given)) for name, given in pairs.items()}))  # type: ignore


def settings_of(limits: Limits) -> dict[str, float]:
    """What a result depends on besides the problem and the engine."""
    return {"seconds": limits.seconds, "workers": limits.workers, "seed": limits.seed}


def record(name: str, solution: Solution, limits: Limits) -> Record:
    """What a solution says, read off once."""
    problem = solution.problem
    history = solution.history
    value = None if solution.value_ticks is None else solution.value_ticks * problem.tick
    first = next((moment.seconds for moment in history if moment.value is not None), None)
    best = None if value is None else next((moment.seconds for moment in history if moment.value == value), None)
    proof = next((moment.seconds for moment in history if moment.value == moment.lower_bound), None)
    greedy = next((c.value for c in solution.candidates if c.name == "zb" and c.metrics and c.fits), None)
    return Record(
        name=name,
        settings=settings_of(limits),
        status=solution.status.value,
        unit=problem.time_unit,
        value=solution.value,
        bubble=None if solution.metrics is None else solution.metrics.bubble(problem.objective),
        bound=solution.lower_bound,
        gap=solution.gap,
        first=first,
        best=best,
        proof=proof if solution.status is Status.OPTIMAL else None,
        wall=solution.wall_seconds,
        proved_by="" if solution.certificate is None else solution.certificate.kind,
        greedy=greedy,
        history=tuple((m.seconds, None if m.value is None else float(m.value), float(m.lower_bound)) for m in history),
        published=min((c.value for c in solution.candidates if c.fits and c.value is not None), default=None),
        notes=solution.notes,
        parts=tuple((name, round(seconds, 3)) for name, seconds in solution.parts),
    )


def measured(problem: Problem, limits: Limits, engine: Engine = ENGINE) -> Record:
    """One solve. One that breaks is a result too: a defect of this tool, which the table shows."""
    started = perf_counter()
    try:
        return record(problem.name, solve(problem, limits, engine=engine), limits)
    except (PipeschedError, ArithmeticError, LookupError, ValueError, AssertionError) as error:
        said = f"{type(error).__name__}: {error}"
        print(f"{problem.name}: {said}", file=sys.stderr)
        seconds = perf_counter() - started
        return Record(problem.name, settings_of(limits), "failed", problem.time_unit, seconds, error=said)


def gap_over_time(found: Record) -> list[tuple[float, float]]:
    """(seconds, gap) at every moment it changed, from the first schedule on; before it nothing is known."""
    moments = [(s, (value - bound) / value) for s, value, bound in found.history if value]
    return moments[:1] + [later for earlier, later in pairwise(moments) if later[1] != earlier[1]]
