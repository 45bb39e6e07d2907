"""The engine of `solve` as data: its phases in their order, with their shares of the time."""

from __future__ import annotations

from dataclasses import replace
from math import inf

from pipesched.problem.problem import Problem
from solver.engine.final_phase import finished, task_level
from solver.engine.phases.beam_schedules import BeamSchedules
from solver.engine.phases.block_orders import BlockOrders
from solver.engine.phases.bounds.all_chains import AllChains
from solver.engine.phases.bounds.all_orders import AllOrders
from solver.engine.phases.bounds.analytic_bounds import AnalyticBounds
from solver.engine.phases.bounds.crossings import CrossingBounds
from solver.engine.phases.bounds.job_shop_bounds import JobShopBounds
from solver.engine.phases.bounds.orders_below import OrdersBelow
from solver.engine.phases.bounds.raise_bounds import RaiseBounds
from solver.engine.phases.bounds.some_stages import MoreStages, SomeStages
from solver.engine.phases.bounds.whole_weights import WholeWeights
from solver.engine.phases.exact_below import ExactModelBelow
from solver.engine.phases.exact_model import ExactModel
from solver.engine.phases.list_schedules import ListSchedules
from solver.engine.phases.local_search import LocalSearch, LocalSearchAgain
from solver.engine.phases.microbatch_orders import MicrobatchOrders
from solver.engine.phases.mirrored_schedules import MirroredSchedules
from solver.engine.phases.one_way_each import OneWayEach
from solver.engine.phases.periodic import Periodic
from solver.engine.phases.published import Published
from solver.engine.phases.published_extended import PublishedExtended
from solver.engine.phases.sequential import Sequential
from solver.engine.phases.step_orders import StepOrders
from solver.engine.phases.step_orders_below import StepOrdersBelow
from solver.engine.phases.tasks.critical_blocks import CriticalBlocks
from solver.engine.phases.tasks.decisions import TaskDecisions
from solver.engine.phases.tasks.exact_model import TaskExactModel
from solver.engine.phases.tasks.orders import TaskOrders
from solver.engine.phases.tasks.policies import TaskPolicies
from solver.engine.phases.tasks.ranks import SerialSchedules, TaskRanks
from solver.engine.phases.tasks.schedules import TaskSchedules
from solver.engine.phases.tasks.two_levels import TwoLevels
from solver.engine.phases.tasks.windows import TaskWindows
from solver.engine.phases.tuned_lists import TunedListSchedules
from solver.engine.search import Engine, Search

# Where no more is left, better schedules are looked for before bounds that take long.
_SMALL_GAP = 0.003
# For one of two chains that are mirror images, on half of the devices.
_ONE_CHAIN = Engine(
    bounds=AnalyticBounds(share=0.15),
    opening=(Published(share=0.3, compare_up_to_passes=0), Sequential()),
    phases=(
        BlockOrders(one_chain_share=0.6),
        ListSchedules(share=0.1),
        ExactModel(share=0.4, most_literals=1_000),
        LocalSearch(left_share=0.0),
    ),
    finish=finished,
    raise_bounds=False,
)

# So few states of a line that crossings come before orders of steps and CP-SAT.
_FEW_STATES = 200
# So few order literals that CP-SAT is likely to prove the optimum whatever is left to prove.
_FEW_LITERALS = 2_500
# Once, as soon as little is left to prove: CP-SAT asked from the bound up often proves all of it. A V placement of
# 8 devices took as long from a gap of 7 % as from .2 %, so that diagrams need not come before.
NEAR_BOUND = ExactModel(
    share=0.5,
    least_literals=_FEW_LITERALS,
    most_literals=40_000,
    job_shop=False,
    near=0.03,
    from_below=True,
    name="CP-SAT from the bound up",
)

ENGINE = Engine(
    bounds=AnalyticBounds(share=0.15),
    opening=(
        PublishedExtended(),
        Published(share=0.1, very_long=True),
        TunedListSchedules(very_long=True, share=0.2, most_share=0.4),
        # Where published schedules take a second each.
        TunedListSchedules(least_passes=5_000),
        CrossingBounds(share=0.3, very_long=True),
        Published(share=0.5),
        MicrobatchOrders(),
        Sequential(),
    ),
    phases=(
        TunedListSchedules(),
        CrossingBounds(share=0.3, most_states=_FEW_STATES),
        ListSchedules(far=0.05),
        BeamSchedules(),
        BlockOrders(),
        StepOrders(share=0.12, near=0.02, most=16),
        # It proves nothing in its first seconds, in which crossings may.
        replace(NEAR_BOUND, near=0.08, several_stages=True, least_seconds=10),
        SomeStages(share=0.3),
        MoreStages(share=0.45),
        CrossingBounds(share=0.2),
        AllOrders(share=0.1, above=_SMALL_GAP),
        AllChains(above=_SMALL_GAP),
        StepOrders(share=0.2),
        StepOrdersBelow(),
        AllOrders(share=0.25, widths=(256,), again=True, few=True, above=_SMALL_GAP),
        WholeWeights(),
        ExactModelBelow(),
        NEAR_BOUND,
        OrdersBelow(),
        NEAR_BOUND,
        Periodic(share=0.15, least_microbatches_a_device=4),
        ListSchedules(share=0.2, least_share=0.1),
        ExactModel(share=0.5, literals=False, job_shop=True, name="CP-SAT, intervals"),
        CriticalBlocks(share=0.25),
        JobShopBounds(share=0.15),
        ExactModel(share=0.4, most_literals=_FEW_LITERALS, job_shop=False),
        CrossingBounds(share=0.2),
        AllOrders(share=0.2, widths=(16, 64, 256), again=True, above=_SMALL_GAP),
        TunedListSchedules(),
        MirroredSchedules(_ONE_CHAIN, share=0.3),
        LocalSearch(left_share=0.35),
        AllOrders(share=0.2),
        NEAR_BOUND,
        RaiseBounds(),
        ExactModel(),
        LocalSearchAgain(),
    ),
    finish=finished,
)

# For passes of several tasks, which run beside and between each other.
TASK_ENGINE = Engine(
    bounds=AnalyticBounds(share=0.15),
    opening=(
        TaskPolicies(share=0.0, many_share=0.5, waiting_share=0.2),
        Published(share=0.3, compare_up_to_passes=0),
        SerialSchedules(),
        TaskSchedules(share=0.1),
    ),
    phases=(
        TwoLevels(ENGINE, share=0.05),
        TaskExactModel(share=0.1, most_literals=600),
        TaskPolicies(many_share=0.1),
        TaskExactModel(share=0.6, most_literals=4_000),
        CriticalBlocks(share=0.3),
        TaskRanks(share=0.5),
        TaskOrders(share=0.5),
        TaskWindows(share=0.2, patience=12),
        TaskExactModel(share=0.4),
        TaskWindows(share=0.5),
        TaskExactModel(),
        TaskWindows(),
    ),
    finish=task_level,
    several_tasks=True,
)

# Where activations may be offloaded or recomputed.
MEMORY_ENGINE = Engine(
    bounds=AnalyticBounds(share=0.15),
    opening=(
        TaskPolicies(share=0.0, many_share=0.7, waiting_share=0.2),
        Published(share=0.1, compare_up_to_passes=0),
        TaskSchedules(share=0.1),
    ),
    phases=(
        TaskPolicies(share=0.1, many_share=0.0),
        OneWayEach(ENGINE, share=0.1),
        TaskWindows(share=0.35, patience=16),
        TaskExactModel(share=0.1, in_order=True, name="CP-SAT, micro-batches in order"),
        TaskDecisions(share=0.1),
        TaskExactModel(share=0.65),
        TaskWindows(share=0.3, patience=12),
        TaskDecisions(share=0.5),
        TaskWindows(share=0.5, patience=12),
        TaskExactModel(),
        TaskWindows(),
    ),
    finish=task_level,
    several_tasks=True,
)

# Bounds and published schedules alone.
WITHOUT_SEARCH = Engine(
    bounds=AnalyticBounds(),
    opening=(Published(share=1.0, compare_up_to_passes=inf),),
    phases=(),
    finish=Search.solution,
    several_tasks=True,
)


def engine_of(problem: Problem) -> Engine:
    """The engine for a problem: that for tasks where a pass is several, that for memory where it is decided."""
    if problem.network.options:
        return MEMORY_ENGINE
    return ENGINE if problem.network.one_task_each else TASK_ENGINE
