"""CBC on the Zero Bubble paper's integer program: what it proves, and its schedule with exact times."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

import pulp

from benchmarks.rivals.zero_bubble_ilp import Ilp
from pipesched.errors import Disagreement
from pipesched.problem.attainable_spans import Value
from pipesched.problem.problem import Problem
from pipesched.schedule.rescale import value_of
from pipesched.schedule.schedule import Schedule
from pipesched.schedule.timeline import Timeline
from pipesched.validation.validator import validate
from solver.construction.timing import best_times


@dataclass(frozen=True)
class IlpOutcome:
    """What CBC ended with; times in ticks.

    `proved`: CBC says optimal. `timeline` is its order with exact times, `value` what that gives, `claimed` CBC's own
    figure (its tolerances may move it), `bound` the bound in its log. `seconds` count all: model, warm start, CBC.
    `version` is CBC's own.
    """

    proved: bool
    timeline: Timeline | None
    value: Value | None
    claimed: float | None
    bound: float | None
    seconds: float
    version: str = ""


def solve_ilp(problem: Problem, seconds: float, workers: int = 1) -> IlpOutcome:
    """The paper's program on a problem. ValueError for what it does not express: see `Ilp`."""
    started = perf_counter()
    model = Ilp(problem)
    warm = model.warm_start()
    with TemporaryDirectory() as folder:
        log = Path(folder) / "cbc.log"
        solver = pulp.PULP_CBC_CMD(
            msg=False, timeLimit=seconds, threads=workers, warmStart=warm, gapAbs=0.5, logPath=str(log)
        )
        model.lp.solve(solver)
        wall = perf_counter() - started
        said = log.read_text()
    bound, version = _said(said, "Lower bound"), _said(said, "Version") or ""
    open_bound = None if bound is None else float(bound)
    claimed = pulp.value(model.longest)
    if model.lp.sol_status not in (pulp.LpSolutionOptimal, pulp.LpSolutionIntegerFeasible) or claimed is None:
        return IlpOutcome(False, None, None, None, open_bound, wall, version)
    timeline, value = exact(problem, model.decode())
    proved = model.lp.sol_status == pulp.LpSolutionOptimal
    return IlpOutcome(proved, timeline, value, claimed, claimed if proved else open_bound, wall, version)


def exact(problem: Problem, order: Schedule) -> tuple[Timeline, Value]:
    """The best times for CBC's order and their value; `Disagreement` where the validator finds a broken rule."""
    timeline = best_times(problem, order)
    violations = validate(timeline)
    if violations:
        raise Disagreement(f"CBC's schedule is not valid: {violations[0].text}")
    return timeline, value_of(problem, timeline)


def _said(log: str, what: str) -> str | None:
    """What CBC's log gives for a word."""
    found = re.search(rf"^{what}:\s+(\S+)", log, re.MULTILINE)
    return found[1] if found else None
