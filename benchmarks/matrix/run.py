"""A set of switches of a kind of file, drawn and run."""

from __future__ import annotations

import time
import traceback
from collections.abc import Sequence
from pathlib import Path

from benchmarks.matrix.case_run import run_case
from benchmarks.matrix.draw import problem_case
from benchmarks.matrix.outcome import Outcome
from benchmarks.matrix.plan_run import run_plan
from benchmarks.matrix.plan_switches import SWITCHES as OF_PLANS
from benchmarks.matrix.problem_switches import SWITCHES as OF_PROBLEMS
from benchmarks.matrix.switch import Switch

KINDS: dict[str, tuple[Switch, ...]] = {"problem": OF_PROBLEMS, "plan": OF_PLANS}


def run_drawn(kind: str, names: Sequence[str], seed: int, thorough: bool) -> Outcome:
    """The outcome; what the matrix itself fails at is a fault, too."""
    begun = time.process_time()
    found = _outcome(kind, names, seed, thorough)
    found.seconds = round(time.process_time() - begun, 3)
    return found


def _outcome(kind: str, names: Sequence[str], seed: int, thorough: bool) -> Outcome:
    try:
        if kind == "plan":
            return run_plan(tuple(names), seed, thorough)
        return run_case(problem_case(tuple(names), seed), thorough)
    except Exception as error:
        at = traceback.extract_tb(error.__traceback__)[-1]
        fault = f"the matrix: {type(error).__name__}: {error} ({Path(at.filename).name}:{at.lineno})"
        return Outcome(kind, tuple(names), seed, faults=[fault])
