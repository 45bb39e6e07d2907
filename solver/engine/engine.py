"""Configuration of `solve`: its construction heuristics, and its subsolvers in the order of their first slices."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf

from solver.engine.analytic_bounds import AnalyticBounds
from solver.engine.construction.first_schedule import FirstSchedule
from solver.engine.construction.microbatch_orders import MicrobatchOrders
from solver.engine.construction.published import PublishedSchedules
from solver.engine.construction.published_extended import PublishedExtended
from solver.engine.construction.sequential import Sequential
from solver.engine.construction.task_schedules import TaskSchedules
from solver.engine.finish import finished
from solver.engine.search import Engine, RoundRobin, Search
from solver.engine.subsolvers.beam_schedules import BeamSchedules
from solver.engine.subsolvers.bounds.activation_modes import ActivationModes
from solver.engine.subsolvers.bounds.all_orders import AllOrders
from solver.engine.subsolvers.bounds.by_device import ByDevice
from solver.engine.subsolvers.bounds.joint_weights import JointWeights
from solver.engine.subsolvers.bounds.thresholds import ThresholdsOnDevices, ThresholdsOnStages
from solver.engine.subsolvers.core_guided import CoreGuided
from solver.engine.subsolvers.destructive import DestructiveBounds
from solver.engine.subsolvers.exact_model import ExactModel
from solver.engine.subsolvers.local_search import LocalSearch
from solver.engine.subsolvers.mirrored_schedules import MirroredSchedules
from solver.engine.subsolvers.no_wait_schedules import NoWaitSchedules
from solver.engine.subsolvers.tasks.critical_blocks import CriticalBlocks
from solver.engine.subsolvers.tasks.policies import TaskPolicies
from solver.engine.subsolvers.tasks.ranks import TaskRanks
from solver.engine.subsolvers.tuned_lists import RulesOfShorter, TunedListSchedules
from solver.engine.subsolvers.windows import Windows
from solver.parameters import tunable, tuned


@dataclass(frozen=True)
@tunable
class EngineParams:
    """Shares of the time limit for published schedules of very long problems and of relaxed problems.

    Other searches use the default of `PublishedSchedules.share`; without subsolvers the share is all of the time.
    """

    very_long_published_share: float = tuned(1 / 15, "of the limit, of very long problems", 0, 1)
    relaxed_published_share: float = tuned(1 / 64, "of the limit, of the problem without its extra tasks", 0, 1)


_PARAMS = EngineParams()
_DIAGRAMS = (
    AllOrders(),
    ThresholdsOnStages(),
    RoundRobin("diagrams below a value", (ByDevice(), ThresholdsOnDevices(), ActivationModes(), JointWeights())),
)
_CORE_GUIDED = CoreGuided()
_OF_PASSES = (
    TunedListSchedules(),
    _DIAGRAMS[0],
    BeamSchedules(),
    NoWaitSchedules(),
    _CORE_GUIDED,
    RoundRobin(
        "CP-SAT",
        (
            DestructiveBounds(),
            ExactModel(),
        ),
    ),
    *_DIAGRAMS[1:],
    LocalSearch(),
    CriticalBlocks(),
)
# For one of two chains that are mirror images, on half of the devices, and for long runs that repeat a pattern.
SCHEDULES_ONLY = Engine(
    bounds=AnalyticBounds(),
    construction=(PublishedSchedules(compare_up_to_passes=0), Sequential()),
    subsolvers=_OF_PASSES,
    finish=Search.solution,
    raise_bounds=False,
)
ENGINE = Engine(
    bounds=AnalyticBounds(),
    construction=(
        PublishedExtended(),
        PublishedSchedules(share=_PARAMS.very_long_published_share, very_long=True),
        RulesOfShorter(),
        PublishedSchedules(),
        MicrobatchOrders(),
        TaskSchedules(),
        Sequential(),
        FirstSchedule(),
    ),
    subsolvers=(
        *_OF_PASSES,
        MirroredSchedules(SCHEDULES_ONLY),
        TaskPolicies(),
        Windows(),
        TaskRanks(),
    ),
    finish=finished,
    dedicated_subsolver=_CORE_GUIDED,
    relaxed=replace(
        SCHEDULES_ONLY,
        construction=(PublishedSchedules(share=_PARAMS.relaxed_published_share, compare_up_to_passes=0), Sequential()),
        raise_bounds=True,
    ),
    as_stages=replace(SCHEDULES_ONLY, subsolvers=_DIAGRAMS, raise_bounds=True),
)

# Bounds and published schedules alone.
WITHOUT_SEARCH = replace(
    ENGINE,
    construction=(PublishedSchedules(share=1.0, compare_up_to_passes=inf),),
    subsolvers=(),
    finish=Search.solution,
)
