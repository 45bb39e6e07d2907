"""Micro-batches cut into pieces, as one problem with a chain of stages for each piece.

A piece is a part of the sequence: its forward reads the keys and values of earlier pieces, so on every stage it follows
theirs, and its backward precedes theirs (Seq1F1B, arXiv 2406.03488). Equal-numbered pieces of all micro-batches share a
chain; arcs between the chains give the order of the pieces.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from pipesched.problem.features.chain_arcs import NO_ARCS, ChainArcs
from pipesched.problem.features.device_resources import Pool
from pipesched.problem.features.parameters import most_gathers
from pipesched.problem.features.stage_arc import StageArc
from pipesched.problem.placement import Placement
from pipesched.problem.problem import Problem
from pipesched.problem.rescale import in_common_steps
from pipesched.problem.stage import Gather


def in_sequence_chunks(pieces: Sequence[Problem]) -> Problem:
    """Return the problem whose micro-batches consist of pieces, from one problem for each piece, first to last.

    The problems may differ only in the costs of stages. Stage s of piece k becomes stage s * (number of pieces) + k; a
    single piece is returned as it is. `KvCache.taken` is memory that a piece keeps until the backward of the first
    piece has ended, which frees it.
    """
    if len(pieces) == 1:
        return pieces[0]
    pieces = in_common_steps(pieces)
    first, count = pieces[0], len(pieces)
    where = first.placement
    stages = [piece.stages[s] for s in range(where.stages) for piece in pieces]
    for s in range(where.stages):
        own = stages[s * count : (s + 1) * count]
        stages[s * count] = replace(
            own[0],
            kv_cache=own[0].kv_cache._replace(released=sum(stage.kv_cache.taken for stage in own)),
            gather=_gathered_by_piece(first, own[0].gather, count),
        )
    turns = [pairwise(range(s * count, (s + 1) * count)) for s in range(where.stages)]
    holders = tuple(s * count for s in range(where.stages) for _ in pieces) if first.network.has_collectives else ()
    in_turn = [pair for line in turns for pair in line]
    return replace(
        first,
        placement=Placement(
            where.name,
            where.devices,
            tuple(device for device in where.stage_device for _ in pieces),
            tuple(tuple(s * count + j for s in chain) for chain in where.chains for j in range(count)),
        ),
        microbatches=first.microbatches * count,
        # A device holds the parameters of a stage once, however many pieces go through it, and reduces once.
        stages=tuple(
            replace(stage, static=0, once=(), gather=None) if n % count else replace(stage, static=0)
            for n, stage in enumerate(stages)
        ),
        pools=tuple(Pool(pool.capacity, static) for pool, static in zip(first.pools, first.static, strict=True)),
        walks=replace(first.walks, shares=tuple(len(walk) for walk in first.walking for _ in pieces)),
        chain_arcs=ChainArcs(
            (
                *(StageArc(earlier, later) for earlier, later in in_turn),
                *(StageArc(later, earlier, backward=True) for earlier, later in in_turn),
            ),
            count,
        ),
        parameters=replace(first.parameters, holders=holders),
        notes=tuple(dict.fromkeys(note for piece in pieces for note in piece.notes)),
    )


def pieces_of(problem: Problem) -> list[Problem]:
    """Return one problem for each piece, by itself: the inverse of `in_sequence_chunks`.

    Not restored are the limit on how often parameters are gathered, the gathering and the passes `once` of pieces after
    the first, and the static memory by stage, which stays with the devices.
    """
    where, count = problem.placement, problem.chain_arcs.pieces
    placement = Placement(
        where.name,
        where.devices,
        where.stage_device[::count],
        tuple(tuple(stage // count for stage in chain) for chain in where.chains[::count]),
    )
    whole = replace(
        problem,
        placement=placement,
        microbatches=problem.microbatches // count,
        stages=problem.stages[::count],
        walks=replace(problem.walks, shares=()),
        chain_arcs=NO_ARCS,
        parameters=replace(problem.parameters, holders=()),
    )
    stages = [replace(stage, kv_cache=stage.kv_cache._replace(released=0)) for stage in problem.stages]
    return [replace(whole, stages=tuple(stages[piece::count])) for piece in range(count)]


def _gathered_by_piece(whole: Problem, own: Gather | None, count: int) -> Gather | None:
    """Return a stage's gathering with its limit raised to the gatherings that passes of `count` pieces may need.

    A stage that is gathered only once, or not at all (None), is returned as it is.
    """
    if own is None or own.most == 1:
        return own
    stages = sum(stage.gather is not None for stage in whole.stages)
    return own._replace(most=most_gathers(whole.parameters.most, whole.microbatches * count, stages))
