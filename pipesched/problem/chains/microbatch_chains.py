"""Unequal micro-batches as chains of stages of their own: the form that searches and bounds read.

Micro-batches with one factor are equal. They get a chain of stages with costs scaled by the factor, on the same
devices, as the two directions of a bidirectional placement do. So everything proved for several chains holds for
unequal micro-batches: only equal ones may be assumed to run in order, and every bound uses each chain's own times.
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
from pipesched.problem.quantities import ChainId, MicrobatchId, StageId
from pipesched.problem.scaled_stage import scaled_stage
from pipesched.problem.stage import Stage

# The chain of the problem that micro-batches walk, and their factor.
_Key = tuple[ChainId, Fraction]


@dataclass(frozen=True)
class MicrobatchChains:
    """A problem with unequal micro-batches, `of`, and the equivalent `problem` with a chain for each group of them.

    A group is of equal micro-batches (`microbatch_chains`). Stage s of `problem` stands for stage `stages[s]` of the
    problem `of`, and micro-batch j of `problem` for micro-batch `microbatches[j]` of it.
    """

    of: Problem
    problem: Problem
    stages: tuple[StageId, ...]
    microbatches: tuple[MicrobatchId, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "_place", {j: place for place, j in enumerate(self.microbatches)})
        walked = enumerate(zip(self.stages, self.problem.microbatches_of, strict=True))
        object.__setattr__(self, "_stage", {(own, j): stage for stage, (own, walking) in walked for j in walking})

    def into(self, p: Pass) -> Pass:
        """Convert pass `p` of the problem with unequal micro-batches to the pass for it in the problem with chains.

        No pass for parameters, whose number is not that of a micro-batch.
        """
        place = self._place[p.microbatch]  # type: ignore[attr-defined]
        return Pass(p.kind, self._stage[p.stage, place], place)  # type: ignore[attr-defined]

    def back(self, p: Pass) -> Pass:
        """Convert pass `p` of the problem with chains to the pass for it in the problem with unequal micro-batches.

        No pass for parameters, whose number is not that of a micro-batch.
        """
        return Pass(p.kind, self.stages[p.stage], self.microbatches[p.microbatch])


def microbatch_chains(problem: Problem) -> MicrobatchChains:
    """Return the problem in which each group of equal micro-batches has a chain of stages.

    The given problem must have factors (`walks.scale`) and no passes for parameters. Where micro-batches may run in any
    order, a group is all micro-batches with the same factor; where their order is fixed, a group is a run of
    consecutive micro-batches with the same factor. The copies of one original stage have consecutive numbers.
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
        pools=tuple(Pool(pool.capacity, static) for pool, static in zip(problem.pools, problem.static, strict=True)),
        links=(),
        walks=Walks(tuple(len(group) for _, group in groups), stages if problem.walks.queues else ()),
    )
    return MicrobatchChains(problem, found, stages, tuple(j for _, group in groups for j in group))


def unequal_microbatches(problem: Problem) -> MicrobatchChains | None:
    """Return the chains of a problem with unequal micro-batches; None where all are equal."""
    return microbatch_chains(problem) if problem.walks.scale else None


def without_scale(problem: Problem) -> Problem:
    """Return the problem without factors of micro-batches, as `microbatch_chains` makes it; itself if all are equal."""
    chains = unequal_microbatches(problem)
    return problem if chains is None else chains.problem


def is_job_shop(chains: Problem) -> bool:
    """Return True if micro-batches of different chains may overtake each other and memory is unlimited: a job shop.

    The chains are those of unequal micro-batches, or others that `walks.shares` gives numbers of micro-batches. Almost
    any two passes of a device may then run in either order, and CP-SAT solves such problems best with intervals in
    place of order literals.
    """
    return bool(chains.walks.shares) and not chains.walks.queues and set(chains.room) == {None}


def _groups(problem: Problem) -> Iterator[tuple[_Key, list[MicrobatchId]]]:
    """Yield the groups of equal micro-batches, each with its key: the index of its chain, and its factor.

    Where the order of micro-batches is fixed, only consecutive ones form a group.
    """
    chain_of = {chain: n for n, chain in enumerate(problem.placement.chains)}
    keys = [(chain_of[problem.chain_of(j)], scale) for j, scale in enumerate(problem.walks.scale)]
    places = range(problem.microbatches)
    order = places if problem.walks.queues else sorted(places, key=lambda j: (keys[j][0], -keys[j][1], j))
    for key, group in groupby(order, key=keys.__getitem__):
        yield key, list(group)


def _scaled(problem: Problem, number: StageId, scale: Fraction) -> Stage:
    """Return stage `number` with its times and memory times `scale`; `transfer` includes the link to the next stage.

    Static memory is left out (0).
    """
    own, after = problem.stages[number], problem.placement.next[number]
    transfer = own.transfer if after is None else problem.lag(number, after)
    return replace(scaled_stage(own, scale, scale), transfer=int(transfer * scale), static=0)
