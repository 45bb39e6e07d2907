"""Unequal micro-batches as chains of stages of their own: the problem that searches and bounds read instead.

Micro-batches of one factor are alike. They walk a chain of stages that costs what they do, on the same devices, as the
two directions of a bidirectional placement do. So all that holds for several chains holds for unequal micro-batches:
passes of one kind need be in order only among equal ones, and every bound counts each chain with its own times.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import groupby

from pipesched.problem.features.device_resources import Pool
from pipesched.problem.features.walks import Walks
from pipesched.problem.passes import Pass
from pipesched.problem.placement import Placement
from pipesched.problem.problem import Problem
from pipesched.problem.scaled_stage import scaled_stage
from pipesched.problem.stage import Stage

# The chain of the problem that micro-batches walk, and their factor.
_Key = tuple[int, Fraction]


@dataclass(frozen=True)
class MicrobatchChains:
    """A problem `of` unequal micro-batches, and `problem`, the same one with chains for them.

    `stages[s]` is the stage that stage s of the chains stands for, `microbatches[j]` the micro-batch that j stands for.
    """

    of: Problem
    problem: Problem
    stages: tuple[int, ...]
    microbatches: tuple[int, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "_place", {j: place for place, j in enumerate(self.microbatches)})
        walked = enumerate(zip(self.stages, self.problem.microbatches_of, strict=True))
        object.__setattr__(self, "_stage", {(own, j): stage for stage, (own, held) in walked for j in held})

    def into(self, p: Pass) -> Pass:
        """The pass of the chains for one of the unequal micro-batches."""
        place = self._place[p.microbatch]  # type: ignore[attr-defined]
        return Pass(p.kind, self._stage[p.stage, place], place)  # type: ignore[attr-defined]

    def back(self, p: Pass) -> Pass:
        """The pass that one of the chains stands for."""
        return Pass(p.kind, self.stages[p.stage], self.microbatches[p.microbatch])


def microbatch_chains(problem: Problem) -> MicrobatchChains:
    """The chains of a problem with factors.

    Where the order of micro-batches is free there is one for each factor, else for each run of equal ones. Stages that
    stand for one are numbered one after the other.
    """
    groups = list(_groups(problem))
    count, where = len(groups), problem.placement
    first = [s * count for s in range(where.stages)]
    chains = tuple(tuple(first[s] + n for s in where.chains[key[0]]) for n, (key, _) in enumerate(groups))
    # The chain of each group has its own stages alone: the others of its numbers belong to no chain.
    used = sorted(stage for chain in chains for stage in chain)
    number = {stage: n for n, stage in enumerate(used)}
    stages = tuple(stage // count for stage in used)
    found = replace(
        problem,
        placement=Placement(
            where.name,
            where.devices,
            tuple(where.stage_device[s] for s in stages),
            tuple(tuple(number[stage] for stage in chain) for chain in chains),
        ),
        stages=tuple(_scaled(problem, stage // count, groups[stage % count][0][1]) for stage in used),
        pools=tuple(Pool(pool.capacity, held) for pool, held in zip(problem.pools, problem.static, strict=True)),
        links=(),
        walks=Walks(tuple(len(held) for _, held in groups), stages if problem.walks.queues else ()),
    )
    return MicrobatchChains(problem, found, stages, tuple(j for _, held in groups for j in held))


def unequal_microbatches(problem: Problem) -> MicrobatchChains | None:
    """The chains of a problem with unequal micro-batches; None where all are equal."""
    return microbatch_chains(problem) if problem.walks.scale else None


def without_scale(problem: Problem) -> Problem:
    """The problem of which bounds are computed: with chains for unequal micro-batches, or the problem itself."""
    chains = unequal_microbatches(problem)
    return problem if chains is None else chains.problem


def is_job_shop(chains: Problem) -> bool:
    """True if unequal micro-batches may pass each other, and memory limits nothing: jobs on machines and no more.

    Nearly any two passes of a device may then come in either order. CP-SAT solves such problems best by intervals.
    """
    return bool(chains.walks.shares) and not chains.walks.queues and set(chains.room) == {None}


def _groups(problem: Problem) -> Iterator[tuple[_Key, list[int]]]:
    """Micro-batches that are alike: all of one chain and factor, or those in a row where the order is fixed."""
    chain_of = {chain: n for n, chain in enumerate(problem.placement.chains)}
    keys = [(chain_of[problem.chain_of(j)], scale) for j, scale in enumerate(problem.walks.scale)]
    places = range(problem.microbatches)
    order = places if problem.walks.queues else sorted(places, key=lambda j: (keys[j][0], -keys[j][1], j))
    for key, held in groupby(order, key=keys.__getitem__):
        yield key, list(held)


def _scaled(problem: Problem, number: int, scale: Fraction) -> Stage:
    """A stage for micro-batches of a factor, with the time of its link, without what the device holds anyway."""
    own, after = problem.stages[number], problem.placement.next[number]
    transfer = own.transfer if after is None else problem.lag(number, after)
    return replace(scaled_stage(own, scale, scale), transfer=int(transfer * scale), static=0)
