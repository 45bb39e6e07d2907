"""The best schedule for your pipeline, with proof. `from pipesched import ...` offers what the other rooms hold."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from pipesched.version import VERSION

if TYPE_CHECKING:
    from heuristics.catalogue import HEURISTICS
    from pipesched.errors import BadInput, Deadlock, DoesNotApply, PipeschedError
    from pipesched.metrics import Metrics, measure
    from pipesched.passes import Pass, PassKind
    from pipesched.placement import Placement
    from pipesched.problem import Objective, Problem
    from pipesched.problem_file import problem_from, read_problem
    from pipesched.schedule import Schedule
    from pipesched.schedule_file import ScheduleFile, read_schedule
    from pipesched.simulator import simulate
    from pipesched.solution import Solution, Status
    from pipesched.timeline import Timeline
    from pipesched.validator import validate
    from pipesched.violation import Violation
    from plots.gantt import draw_gantt
    from plots.memory import draw_memory
    from runtime.catalogue import EXPORTERS
    from solver.limits import Limits
    from solver.solve import solve

__version__ = VERSION

# Where each name lives; a room is imported, with the heavy library it needs, when one of its names is first used.
_HOME = {
    "BadInput": "pipesched.errors",
    "Deadlock": "pipesched.errors",
    "DoesNotApply": "pipesched.errors",
    "EXPORTERS": "runtime.catalogue",
    "HEURISTICS": "heuristics.catalogue",
    "Limits": "solver.limits",
    "Metrics": "pipesched.metrics",
    "Objective": "pipesched.problem",
    "Pass": "pipesched.passes",
    "PassKind": "pipesched.passes",
    "PipeschedError": "pipesched.errors",
    "Placement": "pipesched.placement",
    "Problem": "pipesched.problem",
    "Schedule": "pipesched.schedule",
    "ScheduleFile": "pipesched.schedule_file",
    "Solution": "pipesched.solution",
    "Status": "pipesched.solution",
    "Timeline": "pipesched.timeline",
    "Violation": "pipesched.violation",
    "draw_gantt": "plots.gantt",
    "draw_memory": "plots.memory",
    "measure": "pipesched.metrics",
    "problem_from": "pipesched.problem_file",
    "read_problem": "pipesched.problem_file",
    "read_schedule": "pipesched.schedule_file",
    "simulate": "pipesched.simulator",
    "solve": "solver.solve",
    "validate": "pipesched.validator",
}

__all__ = [
    "EXPORTERS",
    "HEURISTICS",
    "BadInput",
    "Deadlock",
    "DoesNotApply",
    "Limits",
    "Metrics",
    "Objective",
    "Pass",
    "PassKind",
    "PipeschedError",
    "Placement",
    "Problem",
    "Schedule",
    "ScheduleFile",
    "Solution",
    "Status",
    "Timeline",
    "Violation",
    "__version__",
    "draw_gantt",
    "draw_memory",
    "measure",
    "problem_from",
    "read_problem",
    "read_schedule",
    "simulate",
    "solve",
    "validate",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'pipesched' has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)
