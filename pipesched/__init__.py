"""pipesched finds the best schedule of a pipeline, with a proof.

These are the names for `from pipesched import ...`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipesched.version import VERSION

__version__ = VERSION

# The public names, listed here and nowhere else. Each is imported, with the heavy library it needs, when first used.
if TYPE_CHECKING:
    from heuristics.catalogue import HEURISTICS as HEURISTICS
    from pipesched import megatron as megatron
    from pipesched import torch as torch
    from pipesched.errors import BadInput as BadInput
    from pipesched.errors import Deadlock as Deadlock
    from pipesched.errors import DoesNotApply as DoesNotApply
    from pipesched.errors import PipeschedError as PipeschedError
    from pipesched.files.plan_file import plan_problem_from as plan_problem_from
    from pipesched.files.plan_file import read_plan as read_plan
    from pipesched.files.problem_file import problem_from as problem_from
    from pipesched.files.problem_file import read_problem as read_problem
    from pipesched.files.problem_in_code import make_problem as make_problem
    from pipesched.files.problem_in_code import write_problem as write_problem
    from pipesched.files.schedule_file import ScheduleFile as ScheduleFile
    from pipesched.files.schedule_file import read_schedule as read_schedule
    from pipesched.files.schedule_file import save as save
    from pipesched.problem.passes import Pass as Pass
    from pipesched.problem.passes import PassKind as PassKind
    from pipesched.problem.placement import Placement as Placement
    from pipesched.problem.problem import Objective as Objective
    from pipesched.problem.problem import Problem as Problem
    from pipesched.results.analysis.explanation import Explanation as Explanation
    from pipesched.results.analysis.frontier import Frontier as Frontier
    from pipesched.results.candidate import Candidate as Candidate
    from pipesched.results.layouts import LayoutRow as LayoutRow
    from pipesched.results.layouts import Layouts as Layouts
    from pipesched.results.plan import Plan as Plan
    from pipesched.results.solution import Solution as Solution
    from pipesched.results.solution import Status as Status
    from pipesched.schedule.metrics import Metrics as Metrics
    from pipesched.schedule.metrics import measure as measure
    from pipesched.schedule.schedule import Schedule as Schedule
    from pipesched.schedule.schedule import schedule_of as schedule_of
    from pipesched.schedule.timeline import Timeline as Timeline
    from pipesched.simulation.noise import Noise as Noise
    from pipesched.simulation.simulator import simulate as simulate
    from pipesched.validation.validator import validate as validate
    from pipesched.validation.violation import Violation as Violation
    from plots.gantt import draw_gantt as draw_gantt
    from plots.memory import draw_memory as draw_memory
    from plots.of_results import picture_of as picture_of
    from runtime.exporters.catalogue import EXPORTERS as EXPORTERS
    from runtime.pytorch.models import PipelineModel as PipelineModel
    from solver.analysis.pareto_sweep import frontier as frontier
    from solver.analysis.robustness import most_robust as most_robust
    from solver.analysis.robustness import robustness as robustness
    from solver.analysis.sensitivity import explain as explain
    from solver.compare import compare as compare
    from solver.limits import Limits as Limits
    from solver.planning.plan import plan as plan
    from solver.solve import solve as solve
    from solver.sweeps.sweep import sweep as sweep
    from solver.tasks.pair import best_pair as best_pair
    from solver.tasks.pair import pair as pair
    from targets.layouts_in_code import layouts as layouts
else:
    import sys

    from pipesched.lazy_names import LazyNames

    _names = LazyNames(__name__)
    _SHOWN = frozenset(("pipesched.problem.problem", "pipesched.schedule.schedule"))

    # `from pipesched import *` must not need torch, nor replace a user's own `torch` or `megatron`.
    __all__ = ["__version__", *_names.without("torch", "megatron")]  # noqa: PLE0604 - all of them are strings

    def __getattr__(name):
        found = _names(name)
        if not _SHOWN.isdisjoint(sys.modules):  # else there is nothing yet that a notebook could show
            import pipesched.notebook.shown  # noqa: F401
        return found

    def __dir__():
        return sorted({"__version__", *_names.names})
