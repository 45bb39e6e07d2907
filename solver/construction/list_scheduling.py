"""List scheduling for any placement and memory: a first schedule where no published one fits.

At each step the pass that can start earliest goes next; on a device, gradients before forwards before weight passes,
but a weight pass waits if a gradient or forward is ready soon. A forward is let onto a device only if those already
under way there can still run to their end (`lists/memory.py`). Where an overlapped block is shorter than its passes,
some policies run forwards and backwards in blocks.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product, zip_longest

import numpy as np

from pipesched.problem.microbatch_chains import microbatch_chains
from pipesched.problem.mode_gains import saved_by_block
from pipesched.problem.passes import BW, F
from pipesched.problem.problem import Problem
from pipesched.schedule.chain_timelines import schedule_back
from pipesched.schedule.pass_table import Ints, PassTable
from pipesched.schedule.schedule import Schedule
from solver.construction.lists.tables import list_run, rules_of, schedule_of_run, shop_of
from solver.construction.one_after_another import one_after_another
from solver.construction.policy import Policy

# Patience of weight passes, how long passes wait for a block, whether forwards alone leave room for one, and whether
# stages share the memory: what did best together on random problems of all placements.
_BLOCKS = (
    (50, 50, False, True),
    (50, 300, False, True),
    (0, 0, False, True),
    (50, 50, False, False),
    (50, 100, True, True),
)


def list_schedules(problem: Problem, compiled: bool = False) -> Iterator[Schedule]:
    """One complete schedule within memory for each policy; a policy that locks itself out gives none.

    The same, `compiled` or not, but for the time it takes: compiling takes seconds where it has not been done.

    That can happen only where chains run against each other, or where B takes more memory than it gives back. If all
    of them do, those in which the stages of a device share its memory.
    """
    if problem.microbatch_scale:
        chains = microbatch_chains(problem)
        yield from (schedule_back(chains, schedule) for schedule in list_schedules(chains.problem, compiled))
        return
    some = False
    for policy in policies(problem):
        schedule = list_schedule(problem, policy, compiled)
        if schedule is not None:
            some = True
            yield schedule
    if not some:
        sharing = (list_schedule(problem, policy._replace(shares=True), compiled) for policy in policies(problem))
        yield from (schedule for schedule in sharing if schedule is not None)


def list_schedule(problem: Problem, policy: Policy, compiled: bool = False) -> Schedule | None:
    """The schedule of a policy; None if it locks itself out of memory. The same, `compiled` or not."""
    split = policy.split and problem.splittable
    shop = shop_of(problem, split)
    found = list_run(shop, rules_of(problem, policy, shop), compiled=compiled)
    return None if found is None else schedule_of_run(problem, found, split)


def policies(problem: Problem) -> Iterator[Policy]:
    """The policies of every family in turn."""
    for several in zip_longest(*families(problem)):
        yield from (policy for policy in several if policy is not None)


def families(problem: Problem) -> list[list[Policy]]:
    """Policies without and with blocks.

    Those that run all backwards in one way, first with a fixed number of forwards before the first backward where each
    device has one stage, or with shares of the memory for the stages of a device where several compete for it; those
    that form blocks, whose backwards are fused.
    """
    split = problem.splittable
    ties = tuple(product((True, False), (True, False)))
    plain = [
        Policy(way, patience, later, deepest)
        for way, (later, deepest) in product((True, False) if split else (False,), ties)
        for patience in ((0, 50, 100, 200) if way else (0,))
    ]
    sharing = [policy._replace(shares=True) for policy in plain] if _stages_compete(problem) else []
    warming = [
        Policy(split, patience, later, False, warm_up=True) for patience in (0, 50, 100) for later in (True, False)
    ]
    return [
        *([warming] if split and fixes_warm_up(problem) else []),
        *([sharing] if sharing else []),
        plain,
        *([found] if (found := block_policies(problem)) else []),
    ]


def block_policies(problem: Problem) -> list[Policy]:
    """Those that form blocks, if some block is shorter than its passes."""
    if not _some_block_gains(problem):
        return []
    ties = product((True, False), (True, False))
    return [
        Policy(problem.splittable, patience, later, deepest, wait, spare, shares)
        for (patience, wait, spare, shares), (later, deepest) in product(_BLOCKS, ties)
    ]


def fixes_warm_up(problem: Problem) -> bool:
    """Whether the number of forwards before a device's first backward is known: with one stage on each device."""
    return all(len(held) == 1 for held in problem.placement.stages_of)


def _stages_compete(problem: Problem) -> bool:
    """Whether a device of limited memory holds several stages."""
    held = zip(problem.placement.stages_of, problem.room, strict=True)
    return any(len(stages) > 1 and room is not None for stages, room in held)


def _some_block_gains(problem: Problem) -> bool:
    held = problem.placement.stages_of
    pairs = (pair for stages in held for pair in product(stages, repeat=2))
    return any(saved_by_block(problem, *pair) > 0 for pair in pairs)


def sequential(problem: Problem) -> Schedule:
    """One micro-batch after the other, every backward fused: the schedule that fits whenever any does."""
    if problem.stage_arcs:
        return one_after_another(problem)
    stages = problem.placement.stages
    pass_types = [(kind, stage) for kind in (F, BW) for stage in range(stages)]
    rows: list[tuple[Ints, Ints, Ints]] = []  # devices, micro-batches, and places among the pass types
    for device, walk in product(range(problem.devices), problem.placement.chains):
        on = [s for s in walk if problem.placement.stage_device[s] == device]
        if on:
            turn = [*on, *(stages + s for s in reversed(on))]
            first = [problem.microbatches_of[s].start for s in (*on, *reversed(on))]
            places = np.arange(len(problem.microbatches_of[on[0]]))
            microbatch = np.add.outer(places, np.array(first, np.int64)).ravel()
            each = microbatch, np.tile(np.array(turn, np.int64), len(places))
            rows.append((np.full(len(microbatch), device), *each))
    device_of, microbatch, pass_type = (np.concatenate(column) for column in zip(*rows, strict=True))
    slot = np.arange(len(device_of)) - np.searchsorted(device_of, device_of)
    return Schedule(PassTable(problem.devices, device_of, slot, microbatch, pass_type, pass_types), "pipesched")
