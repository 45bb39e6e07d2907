"""List scheduling for any placement and memory: a first schedule where no published one fits.

At each step the pass that can start earliest is next; on a device, gradients before forwards before weight passes, but
a weight pass waits if a gradient or forward is ready soon. A forward may start on a device only if the micro-batches in
flight there can still run to their end (`lists/memory.py`). Where an overlapped block is shorter than its passes, some
policies run forwards and backwards in blocks.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product, zip_longest

from pipesched.deadline import asking
from pipesched.problem.chains.chain_groups import chain_groups
from pipesched.problem.chains.microbatch_chains import unequal_microbatches
from pipesched.problem.passes import BW, B, F, Pass
from pipesched.problem.problem import Problem
from pipesched.schedule.chain_timelines import schedule_back
from pipesched.schedule.schedule import Schedule, schedule_of
from solver.construction.lists.tables import list_run, rules_of, schedule_of_run, shop_of
from solver.construction.policy import LISTS, Policy


def list_schedules(problem: Problem, compiled: bool = False) -> Iterator[Schedule]:
    """Yield one complete schedule within memory for each policy; a policy that deadlocks gives none.

    Each pass must be one task on the only stream of its device, no activation offloaded or recomputed. Policies are
    tried in the order of `policies`. The result is the same `compiled` or not; compiling takes seconds if it was not
    done before. Deadlocks are possible only where chains run against each other, or where B takes more memory than it
    frees. If all policies deadlock, variants are tried in which the stages of a device share its memory.
    """
    chains = unequal_microbatches(problem)
    if chains is not None:
        yield from (schedule_back(chains, schedule) for schedule in list_schedules(chains.problem, compiled))
        return
    some = False
    for policy in asking(policies(problem)):
        schedule = list_schedule(problem, policy, compiled)
        if schedule is not None:
            some = True
            yield schedule
    if not some:
        sharing = (list_schedule(problem, policy._replace(shares=True), compiled) for policy in policies(problem))
        yield from (schedule for schedule in sharing if schedule is not None)


def list_schedule(problem: Problem, policy: Policy, compiled: bool = False) -> Schedule | None:
    """Return the schedule that the list scheduler makes with a policy; None if it deadlocks on memory.

    Each pass must be one task on the only stream of its device, no activation offloaded or recomputed, and
    micro-batches equal. The result is the same `compiled` or not.
    """
    split = policy.split and problem.pipeline.splits
    shop = shop_of(problem, split)
    found = list_run(shop, rules_of(problem, policy, shop), compiled=compiled)
    return None if found is None else schedule_of_run(problem, found, split)


def policies(problem: Problem) -> Iterator[Policy]:
    """Yield the policies to try: the first of every family, then the second of every family, and so on."""
    for several in zip_longest(*families(problem)):
        yield from (policy for policy in several if policy is not None)


def families(problem: Problem) -> list[list[Policy]]:
    """Return the policies to try for a problem, in families, each in the order in which its policies are tried.

    The first families run all backwards in one mode. There is one with a fixed number of forwards before the first
    backward, if each device has one stage and backwards may be split; one with shares of the memory, if several stages
    of a device compete for it; and one without either. After them are the policies that form blocks: the backward of a
    block is full, others are split if they may be.
    """
    may_split = problem.pipeline.splits
    ties = tuple(product((True, False), (True, False)))
    plain = [
        Policy(splits, patience, later, deepest)
        for splits, (later, deepest) in product((True, False) if may_split else (False,), ties)
        for patience in (LISTS.waits if splits else (0,))
    ]
    sharing = [policy._replace(shares=True) for policy in plain] if _stages_compete(problem) else []
    warming = [
        Policy(may_split, patience, later, False, warm_up=True) for patience in LISTS.waits for later in (True, False)
    ]
    return [
        *([warming] if may_split and fixes_warm_up(problem) else []),
        *([sharing] if sharing else []),
        plain,
        *([found] if (found := block_policies(problem)) else []),
    ]


def block_policies(problem: Problem) -> list[Policy]:
    """Return the policies that form overlapped blocks; empty if no block is shorter than its two passes in turn."""
    if not _some_block_gains(problem):
        return []
    ties = product((True, False), (True, False))
    return [
        Policy(problem.pipeline.splits, LISTS.first_wait, later, deepest, wait, shares)
        for wait, shares, (later, deepest) in product(LISTS.waits, (True, False), ties)
    ]


def fixes_warm_up(problem: Problem) -> bool:
    """True if each device has one stage.

    Then a policy may fix the number of forwards before the device's first backward.
    """
    return all(len(stages) == 1 for stages in problem.placement.stages_of)


def _stages_compete(problem: Problem) -> bool:
    """True if a device of limited memory has several stages."""
    stages_and_rooms = zip(problem.placement.stages_of, problem.room, strict=True)
    return any(len(stages) > 1 and room is not None for stages, room in stages_and_rooms)


def _some_block_gains(problem: Problem) -> bool:
    view = problem.pipeline
    return any(view.saved_by_block(*pair) > 0 for pair in view.pairs_on_devices())


def sequential(problem: Problem) -> Schedule:
    """Return the schedule of one micro-batch after the other, every backward full: it fits whenever any schedule does.

    For each micro-batch of a chain that feeds no other chain, first its forwards run, each after the forwards of the
    chains that feed it; then its backwards. Backwards of a feeding chain run as soon as those of all micro-batches that
    it fed have ended.
    """
    chains, number = problem.placement.chains, problem.placement.chain_index
    feeding = {number[arc.before] for arc in problem.chain_arcs.arcs if not arc.backward}
    run = _Run(problem)
    for group in chain_groups(problem):
        after = {n: 0 for n in reversed(group) if n in feeding}
        last = [n for n in group if n not in feeding]
        for row in asking(zip(*(problem.walking[n] for n in last), strict=True)):
            for kind, end in ((F, -1), (BW, 0)):
                for n, j in zip(last, row, strict=True):
                    run.to(Pass(kind, chains[n][end], j))
            for one, done in after.items():
                left = problem.walking[one][done:]
                while left and run.ready(Pass(BW, chains[one][-1], left[0])):
                    run.to(Pass(BW, chains[one][0], left[0]))
                    left = left[1:]
                after[one] = len(problem.walking[one]) - len(left)
    orders: list[list[Pass]] = [[] for _ in range(problem.devices)]
    for p in run.passes:
        orders[problem.device(p)].append(p)
    return schedule_of(orders, "pipesched")


class _Run:
    """One order of passes, built by adding a pass with all that it waits for; `passes` has them as keys, in order."""

    def __init__(self, problem: Problem) -> None:
        self._needs = problem.network.needs
        self.passes: dict[Pass, None] = {}

    def to(self, last: Pass) -> None:
        """Add a pass to the order, and before it all predecessors that are not in it, and theirs."""
        waiting = [last]
        while waiting:
            before = [p for p in self._before(waiting[-1]) if p not in self.passes]
            if before:
                waiting.append(before[0])
            else:
                self.passes[waiting.pop()] = None

    def ready(self, p: Pass) -> bool:
        """True if all predecessors of a pass are in the order."""
        return all(before in self.passes for before in self._before(p))

    def _before(self, p: Pass) -> Iterator[Pass]:
        for alternatives, _, optional, share, _ in self._needs[p.kind, p.stage]:
            kind, stage = alternatives[0]
            if not optional:
                numbers = (p.microbatch,) if share is None else share.numbers(p.microbatch)
                yield from (Pass(BW if kind is B else kind, stage, j) for j in numbers)
