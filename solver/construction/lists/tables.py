"""Conversion of a problem and a policy to arrays for a run of the list scheduler, and of its runs to schedules."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np

from pipesched.deadline import ask
from pipesched.int64_arrays import int64_array
from pipesched.problem.passes import BW, B, F, Pass, W
from pipesched.problem.problem import Objective, Problem
from pipesched.problem.quantities import StageId, Ticks
from pipesched.schedule.pass_table import PassTable
from pipesched.schedule.schedule import Schedule
from solver.bounds.analytic.integral_warmup import warm_up_forwards
from solver.construction.in_flight_shares import in_flight_shares
from solver.construction.lists.kernel import compiled_run, run_list
from solver.construction.lists.layout import (
    BLOCKS,
    DEVICE_COLUMNS,
    FIRST,
    MOST,
    PATIENCE,
    RULE_COLUMNS,
    SPLIT,
    STAGE_COLUMNS,
    STOP,
    TICKS,
    WARM_UP,
    WEIGHT,
    WHOLE,
    Array,
    Rules,
    Shop,
)
from solver.construction.policy import Policy
from solver.construction.reserved_memory import with_reserve

# More than any number of micro-batches.
ANY = 2**62


def covers(problem: Problem) -> bool:
    """True if the list scheduler supports the problem: each pass is one task, on the only stream of its device.

    No activation may be offloaded or recomputed, no pass may run for parameters, micro-batches must be equal, and
    numbers small enough for compiled code.
    """
    network = problem.network
    one_stream = len(network.resources) == len({resource.device for resource in network.resources})
    single = one_stream and all(len(tasks) == 1 for tasks in network.tasks.values())
    open_ = network.has_activation_modes or network.has_collectives or network.scale
    return single and not open_ and fits_64_bits(problem)


def fits_64_bits(problem: Problem) -> bool:
    """True if all times and memory levels fit 64-bit integers, as compiled code needs."""
    each = sum(stage.ticks(kind) + stage.transfer for stage in problem.stages for kind in stage.kinds)
    longest = (each + sum(map(sum, problem.links))) * max(1, problem.microbatches)
    memory_of_all = sum(map(abs, problem.network.memory_in_flight)) * max(1, problem.microbatches)
    return max(longest, memory_of_all, *(room or 0 for room in problem.room)) < 2**60


def shop_of(problem: Problem, split: bool) -> Shop:
    """Return the problem as arrays for a run, with backwards `split` or full; in blocks they are always full.

    Numbers that 64-bit integers cannot represent are Python's, in arrays of objects. Memory for workspace is reserved
    (`with_reserve`).
    """
    problem = with_reserve(problem)
    where, kind = problem.placement, np.int64 if fits_64_bits(problem) else object
    memory_in_flight, own, walked = problem.network.memory_in_flight, range(where.stages), problem.microbatches_of
    owed = np.zeros((problem.devices, len(where.chains)), kind)
    for s in own:
        owed[where.stage_device[s], where.chain_index[s]] += memory_in_flight[s]
    at = [0, *accumulate(map(len, where.stages_of))]
    devices = np.zeros((problem.devices, DEVICE_COLUMNS), kind)
    for d, room in enumerate(problem.room):
        devices[d] = room is not None, room or 0, at[d], at[d + 1]
    stages = np.array([_stage(problem, s, split) for s in own], kind).reshape(-1, STAGE_COLUMNS)
    blocks = np.full((where.stages, where.stages), -1, kind)
    for pair, ticks in problem.network.blocks.items():
        blocks[pair] = ticks
    on = int64_array([s for each in where.stages_of for s in each])
    shares: list[list[int]] = []
    needs = [list(_needs(problem, s, role, split, shares)) for s in own for role in (F, B)]
    near: list[set[int]] = [{where.stage_device[s]} for s in own]
    for place, rows in enumerate(needs):
        for other, *_ in rows:
            near[other].add(where.stage_device[place // 2])
    lines = {q: sorted(j for s in own if problem.walks.queues[s] == q for j in walked[s]) for q in problem.walks.queues}
    return Shop(
        stages, blocks, devices, on, owed, *_rows(needs, 4, kind), *_rows([sorted(each) for each in near], 1, np.int64),
        _padded([lines.get(q, ()) for q in range(max(lines, default=-1) + 1)]), _padded(shares),
    )  # fmt: skip


def _padded(lists: Sequence[Sequence[int]]) -> Array:
    """Return lists as the rows of an array, each padded with at least one -1."""
    longest = max(map(len, lists), default=0) + 1
    return int64_array([[*one, *[-1] * (longest - len(one))] for one in lists]).reshape(-1, longest)


def _stage(problem: Problem, s: StageId, split: bool) -> list[int]:
    """Return a stage's numbers for the list scheduler (a row of `Shop.stages`), with its backwards split or full.

    They are its device, its first micro-batch and the one after its last, its chain, its queue (-1: none); then by kind
    of pass (F, backward, W, full backward) the ticks, the memory taken at the start, and that taken in all.
    """
    where, walked = problem.placement, problem.microbatches_of[s]
    line = problem.walks.queues[s] if problem.walks.queues else -1
    kinds = (F, B, W, BW) if split else (F, BW, None, BW)
    ticks = [0 if kind is None else problem.duration(Pass(kind, s, walked.start)) for kind in kinds]
    changes = [(0, 0) if kind is None else problem.network.change[kind, s] for kind in kinds]
    return [
        where.stage_device[s], walked.start, walked.stop, where.chain_index[s], line, *ticks,
        *(at_start for at_start, _ in changes), *map(sum, changes),
    ]  # fmt: skip


def _needs(
    problem: Problem, s: StageId, role: object, split: bool, shares: list[list[int]]
) -> Iterator[tuple[int, int, int, int]]:
    """Yield the rows of `Shop.needs` for a stage's forward or backward (`role` F or B), one for each wait.

    Waits are for passes on other stages, or of other micro-batches. A stage runs micro-batches in order, so of several
    micro-batches of one stage the last one counts: for each such wait, the list of these, by micro-batch of stage `s`,
    is appended to `shares`. With `split` the backward is B, else BW.
    """
    kind = F if role is F else B if split else BW
    for need in problem.network.needs[kind, s]:
        before, other = need.alternatives[0]
        if before in (F, B, BW) and not need.optional and (other != s or need.share):
            row = -1 if need.share is None else len(shares)
            if need.share is not None:
                walked = problem.microbatches_of[s]
                shares.append([max(need.share.numbers(j), default=-1) for j in walked])
            yield other, int(before is not F), need.lag, row


def _rows(lists: Sequence[Sequence[object]], columns: int, kind: type) -> tuple[Array, Array]:
    """Return lists as compressed rows: the index at which each list begins, and the entries one list after the other.

    Each entry has `columns` numbers.
    """
    at = int64_array([0, *accumulate(map(len, lists))])
    flat: Array = np.array([one for each in lists for one in each], kind)
    return at, flat.reshape(-1, columns) if columns > 1 else flat


def rules_of(problem: Problem, policy: Policy, shop: Shop) -> Rules:
    """Return the preferences of a policy as arrays for a run; in-flight shares and warm-up counts are computed here."""
    shares = in_flight_shares(problem) if policy.shares else {}
    rules = np.zeros((len(shop.stages), RULE_COLUMNS), shop.stages.dtype)
    rules[:, MOST] = [shares.get(s, ANY) for s in range(len(rules))]
    for stage, forwards in (warm_up_forwards(problem) if policy.warm_up else {}).items():
        rules[stage, WARM_UP] = forwards
    rules[:, PATIENCE] = shop.stages[:, TICKS + WEIGHT] * policy.patience // 100
    split, blocks = policy.split and problem.pipeline.splits, -1 if policy.blocks is None else policy.blocks
    flags = split, policy.later_devices_first, policy.deepest_first, False, blocks
    return Rules(np.array(flags, rules.dtype), rules)


class ListRun(NamedTuple):
    """A completed run of the list scheduler: its passes in the order in which they were scheduled; times are in ticks.

    A row of `put` is (kind, stage, micro-batch); kinds are those of `layout`: FORWARD, BACKWARD (B or BW), WEIGHT, and
    WHOLE for the backward of a block, directly after the row of its forward. `span` and `makespan` are those of
    starting as soon as possible. `spans` is the sum over all devices of the time from first start to last end, `ends`
    the sum of their last ends.
    """

    put: Array
    span: Ticks
    makespan: Ticks
    spans: Ticks
    ends: Ticks

    def value(self, objective: Objective) -> Ticks:
        """Return the run's span or makespan in ticks.

        It is an upper bound on the objective of the best times of this order.
        """
        return self.span if objective.by_device else self.makespan

    def sum_over_devices(self, objective: Objective) -> Ticks:
        """Return the sum of the devices' times in ticks: `spans` if the objective is a span, else `ends`.

        It is the tie-breaker of two runs of equal value.
        """
        return self.spans if objective.by_device else self.ends


class _Deadline:
    """Stand-in for the `halt` array of an interpreted run, in which each access checks the deadline."""

    def __getitem__(self, _: int) -> int:
        ask()
        return 0


def list_run(shop: Shop, rules: Rules, halt: Array | None = None, compiled: bool = True) -> ListRun | None:
    """Run the list scheduler once over arrays; None if memory deadlocks, or if another thread sets `halt[0]`.

    The result is the same `compiled` or not. Arrays of Python's integers are never run compiled. Without `halt`, an
    interpreted run checks the deadline before each pass, and raises `TimeLimitReached` after it.
    """
    passes = int((shop.stages[:, STOP] - shop.stages[:, FIRST]).sum())
    put = np.empty(((3 if rules.flags[SPLIT] else 2) * passes, 3), np.int64)
    if compiled and shop.stages.dtype == np.int64:
        run: Any = compiled_run
        looks: Any = np.zeros(1, np.int64) if halt is None else halt
    else:
        run, looks = run_list, _Deadline() if halt is None else halt
    done, *times = run(shop, rules, put, looks)
    whole = done >= 0 and (done == len(put) or rules.flags[BLOCKS] >= 0)
    return ListRun(put[:done], *map(int, times)) if whole else None


def schedule_of_run(problem: Problem, run: ListRun, split: bool) -> Schedule:
    """Return the schedule with the passes of a run in order, device by device.

    Backwards are B and W if `split`, else BW, and in blocks always BW; `split` must be that of the run.
    """
    stages = problem.placement.stages
    kinds = (F, B, W, BW) if split else (F, BW)
    device = np.array(problem.placement.stage_device)[run.put[:, 1]]
    order = np.argsort(device, kind="stable")
    kind, stage, microbatch = run.put[order].T
    device, in_block = device[order], kind == WHOLE
    # The backward of a block is in the slot of its forward.
    slot = np.cumsum(~in_block)
    slot -= slot[np.searchsorted(device, device)]
    used, pass_type = np.unique(np.where(in_block, len(kinds) - 1, kind) * stages + stage, return_inverse=True)
    pass_types = [(kinds[one // stages], one % stages) for one in used.tolist()]
    table = PassTable(problem.devices, device, slot, microbatch, pass_type, pass_types)
    return Schedule(table, "pipesched")
