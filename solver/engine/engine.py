"""The engine of `solve` as data: what opens a search, and the parts that then share its time, first slices in order."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf

from solver.engine.finish import finished
from solver.engine.opening.analytic_bounds import AnalyticBounds
from solver.engine.opening.first_schedule import FirstSchedule
from solver.engine.opening.microbatch_orders import MicrobatchOrders
from solver.engine.opening.published import Published
from solver.engine.opening.published_extended import PublishedExtended
from solver.engine.opening.sequential import Sequential
from solver.engine.opening.task_schedules import TaskSchedules
from solver.engine.parts.beam_schedules import BeamSchedules
from solver.engine.parts.bounds.activation_modes import ActivationModes
from solver.engine.parts.bounds.all_orders import AllOrders
from solver.engine.parts.bounds.by_device import ByDevice
from solver.engine.parts.bounds.thresholds import ThresholdsOnDevices, ThresholdsOnStages
from solver.engine.parts.core_guided import CoreGuided
from solver.engine.parts.destructive import DestructiveBounds
from solver.engine.parts.exact_model import ExactModel
from solver.engine.parts.local_search import LocalSearch
from solver.engine.parts.mirrored_schedules import MirroredSchedules
from solver.engine.parts.step_orders import StepOrders
from solver.engine.parts.tasks.critical_blocks import CriticalBlocks
from solver.engine.parts.tasks.policies import TaskPolicies
from solver.engine.parts.tasks.ranks import TaskRanks
from solver.engine.parts.tuned_lists import RulesOfShorter, TunedListSchedules
from solver.engine.parts.windows import Windows
from solver.engine.search import Engine, InTurn, Search
from solver.parameters import tunable, tuned


@dataclass(frozen=True)
@tunable
class EngineParams:
    """Shares of the time limit for published schedules where the engine departs from the default of the opening."""

    very_long_published_share: float = tuned(1 / 15, "of the limit, of very long problems", 0, 1)
    relaxed_published_share: float = tuned(1 / 64, "of the limit, of the problem without its extra tasks", 0, 1)


_PARAMS = EngineParams()
_DIAGRAMS = (
    AllOrders(),
    ThresholdsOnStages(),
    InTurn("diagrams below a value", (ByDevice(), ThresholdsOnDevices(), ActivationModes())),
)
_FROM_BELOW = CoreGuided()
_OF_PASSES = (
    TunedListSchedules(),
    _DIAGRAMS[0],
    BeamSchedules(),
    StepOrders(),
    _FROM_BELOW,
    InTurn(
        "CP-SAT",
        (
            ExactModel(in_order=True, name="CP-SAT, micro-batches in order"),
            DestructiveBounds(),
            ExactModel(),
        ),
    ),
    *_DIAGRAMS[1:],
    LocalSearch(),
    CriticalBlocks(),
)
# For one of two chains that are mirror images, on half of the devices.
_SCHEDULES_ONLY = Engine(
    bounds=AnalyticBounds(),
    opening=(Published(compare_up_to_passes=0), Sequential()),
    parts=_OF_PASSES,
    finish=Search.solution,
    raise_bounds=False,
)
ENGINE = Engine(
    bounds=AnalyticBounds(),
    opening=(
        PublishedExtended(),
        Published(share=_PARAMS.very_long_published_share, very_long=True),
        RulesOfShorter(),
        Published(),
        MicrobatchOrders(),
        TaskSchedules(),
        Sequential(),
        FirstSchedule(),
    ),
    parts=(
        *_OF_PASSES,
        MirroredSchedules(_SCHEDULES_ONLY),
        TaskPolicies(),
        Windows(),
        TaskRanks(),
    ),
    finish=finished,
    dedicated_part=_FROM_BELOW,
    relaxed=replace(
        _SCHEDULES_ONLY,
        opening=(Published(share=_PARAMS.relaxed_published_share, compare_up_to_passes=0), Sequential()),
        raise_bounds=True,
    ),
    as_stages=replace(_SCHEDULES_ONLY, parts=_DIAGRAMS, raise_bounds=True),
)

# Bounds and published schedules alone.
WITHOUT_SEARCH = replace(
    ENGINE, opening=(Published(share=1.0, compare_up_to_passes=inf),), parts=(), finish=Search.solution
)
