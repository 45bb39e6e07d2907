"""Unequal micro-batches as chains of stages of their own.

The problem is equivalent, and has equal micro-batches on each chain.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import groupby

from pipesched.problem.blocks import Blocks
from pipesched.problem.features.device_resources import Pool
from pipesched.problem.features.walks import Walks
from pipesched.problem.kv_cache import KvCache
from pipesched.problem.placement import Placement
from pipesched.problem.problem import Problem
from pipesched.problem.quantities import StageId
from pipesched.problem.stage import PassMemory, Stage


def with_equal_microbatches(problem: Problem) -> Problem:
    """Return the problem with a chain for each group of equal micro-batches; the problem itself if all are equal.

    A group is all micro-batches of one factor, or where they keep their order each run of equal ones. Each new stage is
    on the device of its original; stages are numbered by original, then by chain.
    """
    scale = problem.walks.scale
    if not scale:
        return problem
    walked = [n for n, own in enumerate(problem.walking) for _ in own]
    alike = [(chain, -factor) for chain, factor in zip(walked, scale, strict=True)]
    groups = [(*key, len([*own])) for key, own in groupby(alike if problem.walks.queues else sorted(alike))]
    where, chains = problem.placement, problem.placement.chains
    standing = sorted((stage, n) for n, (chain, _, _) in enumerate(groups) for stage in chains[chain])
    number = {pair: at for at, pair in enumerate(standing)}
    on = tuple(where.stage_device[stage] for stage, _ in standing)
    walks = tuple(tuple(number[stage, n] for stage in chains[chain]) for n, (chain, _, _) in enumerate(groups))
    static = [pool.static for pool in problem.pools]
    for stage, device in zip(problem.stages, where.stage_device, strict=True):
        static[device] += stage.static
    return replace(
        problem,
        placement=Placement(where.name, where.devices, on, walks),
        stages=tuple(_times(problem, stage, -groups[n][1]) for stage, n in standing),
        pools=tuple(Pool(pool.capacity, amount) for pool, amount in zip(problem.pools, static, strict=True)),
        links=(),
        walks=Walks(
            shares=tuple(count for *_, count in groups),
            queues=tuple(stage for stage, _ in standing) if problem.walks.queues else (),
        ),
    )


def _times(problem: Problem, number: StageId, factor: Fraction) -> Stage:
    """Return the stage `number` with all its times and memory scaled by `factor`.

    Its transfer includes the link to the next stage of its chain, which takes equally long in both directions. Factors
    exclude passes for parameters.
    """
    own, where = problem.stages[number], problem.placement
    after = where.next[number]
    transfer = own.transfer
    if after is not None:
        there = where.stage_device[number], where.stage_device[after]
        link = problem.links[there[0]][there[1]] if problem.links else 0
        transfer = 0 if there[0] == there[1] else own.transfer + link

    def times(amount: int) -> int:
        whole = amount * factor
        assert whole.denominator == 1, "times and memory are whole for every micro-batch"
        return whole.numerator

    copies = own.offload
    return replace(
        own,
        forward=times(own.forward),
        backward=times(own.backward),
        weight=None if own.weight is None else times(own.weight),
        fused=times(own.fused),
        transfer=times(transfer),
        blocks=Blocks(*(None if ticks is None else times(ticks) for ticks in own.blocks)),
        activation=times(own.activation),
        freed=times(own.freed),
        kv_cache=KvCache(*map(times, own.kv_cache)),
        workspace=PassMemory(*map(times, own.workspace)),
        until_end=PassMemory(*map(times, own.until_end)),
        static=0,
        tasks=tuple((kind, tuple(t._replace(ticks=times(t.ticks)) for t in tasks)) for kind, tasks in own.tasks),
        offload=None
        if copies is None
        else copies._replace(
            out_ticks=times(copies.out_ticks), in_ticks=times(copies.in_ticks), amount=times(copies.amount)
        ),
        recompute=tuple(mode._replace(ticks=times(mode.ticks), keeps=times(mode.keeps)) for mode in own.recompute),
    )
