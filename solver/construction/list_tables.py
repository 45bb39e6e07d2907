"""A problem and a policy as arrays for the compiled list scheduler, and its runs as schedules."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pipesched.problem.passes import BW, B, F, W
from pipesched.problem.problem import Objective, Problem
from pipesched.schedule.pass_table import PassTable
from pipesched.schedule.schedule import Schedule
from solver.bounds.analytic.integral_warmup import warm_up_forwards
from solver.construction.in_flight_shares import in_flight_shares
from solver.construction.list_kernel import (
    FIRST,
    MOST,
    PATIENCE,
    RULE_COLUMNS,
    STAGE_COLUMNS,
    STOP,
    TICKS,
    WARM_UP,
    WEIGHT,
    Array,
    Rules,
    Shop,
    run_list,
)
from solver.construction.policy import Policy

# More than any number of micro-batches.
ANY = 2**62


def covers(problem: Problem) -> bool:
    """Whether the compiled scheduler can run it: one task a pass, equal micro-batches in any order, small numbers."""
    each = sum(stage.ticks(kind) + stage.transfer for stage in problem.stages for kind in stage.kinds)
    longest = (each + sum(map(sum, problem.links))) * max(1, problem.microbatches)
    return problem.network.one_task_each and not (problem.microbatch_scale or problem.queues) and longest < 2**60


def is_plain(policy: Policy) -> bool:
    """Whether a policy chooses no modes."""
    return not (policy.fuse or policy.spare) and policy.blocks is None


def shop_of(problem: Problem, split: bool) -> Shop:
    """The problem with its backwards run in one way."""
    where, change, room = problem.placement, problem.network.change, problem.room
    kinds = (F, B, W) if split else (F, BW)
    stages = np.zeros((where.stages, STAGE_COLUMNS), np.int64)
    owed = np.zeros((problem.devices, len(where.chains)), np.int64)
    for s, each in enumerate(problem.microbatches_of):
        before, after = where.previous[s], where.next[s]
        stages[s, :TICKS] = (
            where.stage_device[s],
            -1 if before is None else before,
            -1 if after is None else after,
            0 if before is None else problem.lag(before, s),
            0 if after is None else problem.lag(after, s),
            each.start,
            each.stop,
            where.chain_index[s],
        )
        for column, kind in enumerate(kinds, TICKS):
            memory = change[kind, s]
            stages[s, column : column + 9 : 3] = problem.stages[s].ticks(kind), memory.at_start, memory.total
        owed[where.stage_device[s], where.chain_index[s]] += problem.network.held_in_flight[s]
    at = np.cumsum([0, *map(len, where.stages_of)])
    limits = [0 if each is None else each for each in room]
    devices = np.array([[each is not None for each in room], limits, at[:-1], at[1:]], np.int64).T
    on = np.array([s for held in where.stages_of for s in held], np.int64)
    return Shop(stages, np.ascontiguousarray(devices), on, owed)


def rules_of(problem: Problem, policy: Policy, shop: Shop) -> Rules:
    """A policy as arrays."""
    shares = in_flight_shares(problem) if policy.shares else {}
    rules = np.zeros((len(shop.stages), RULE_COLUMNS), np.int64)
    rules[:, MOST] = [shares.get(s, ANY) for s in range(len(rules))]
    for stage, forwards in (warm_up_forwards(problem) if policy.warm_up else {}).items():
        rules[stage, WARM_UP] = forwards
    rules[:, PATIENCE] = shop.stages[:, TICKS + WEIGHT] * policy.patience // 100
    flags = policy.split and problem.splittable, policy.later_devices_first, policy.deepest_first, False
    return Rules(np.array(flags, np.int64), rules)


class ListRun(NamedTuple):
    """What a run puts in turn: kind, stage and micro-batch in rows; and the span and the makespan it counts.

    `spans` and `ends` are the sums over all devices of the times from their first start to their last end, and of the
    last ends.
    """

    put: Array
    span: int
    makespan: int
    spans: int
    ends: int

    def value(self, objective: Objective) -> int:
        """An upper bound on the objective of the best times of this order."""
        return self.span if objective is Objective.SPAN else self.makespan

    def sum_over_devices(self, objective: Objective) -> int:
        """What the devices take in all: of two runs of one value the better one has less."""
        return self.spans if objective is Objective.SPAN else self.ends


def list_run(shop: Shop, rules: Rules, halt: Array | None = None) -> ListRun | None:
    """One run; None if memory locks, or where another thread sets `halt[0]`."""
    passes = int((shop.stages[:, STOP] - shop.stages[:, FIRST]).sum())
    put = np.empty(((3 if rules.flags[0] else 2) * passes, 3), np.int64)
    done, *times = run_list(*shop, *rules, put, np.zeros(1, np.int64) if halt is None else halt)
    return ListRun(put, *map(int, times)) if done == len(put) else None


def schedule_of_run(problem: Problem, run: ListRun, split: bool) -> Schedule:
    """The order in which a run put its passes, device by device."""
    stages = problem.placement.stages
    pass_types = [(kind, s) for kind in ((F, B, W) if split else (F, BW)) for s in range(stages)]
    device = np.array(problem.placement.stage_device)[run.put[:, 1]]
    order = np.argsort(device, kind="stable")
    kind, stage, microbatch = run.put[order].T
    device = device[order]
    slot = np.arange(len(device)) - np.searchsorted(device, device)
    table = PassTable(problem.devices, device, slot, microbatch, kind * stages + stage, pass_types)
    return Schedule(table, "pipesched")
