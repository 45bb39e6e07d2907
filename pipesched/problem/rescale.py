"""A problem in finer ticks, for periods and spans that are fractions of a tick."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from math import lcm

from pipesched.problem.attainable_spans import Value, simplest
from pipesched.problem.problem import Pool, Problem
from pipesched.problem.stage import Stage


def with_microbatch_scale(problem: Problem, scale: Sequence[Fraction], fixed: bool) -> Problem:
    """The same problem with a factor for each micro-batch, in ticks and memory in which all products are integers.

    `fixed` keeps micro-batches in order on every stage. Where all factors are 1 nothing changes: micro-batches that
    are alike may be renumbered, so that their order is no restriction.
    """
    if set(scale) <= {1}:
        return problem
    parts = lcm(*(one.denominator for one in scale))
    whole = finer(problem, parts)
    return replace(
        whole,
        stages=tuple(
            replace(s, activation=s.activation * parts, freed=s.freed * parts, static=s.static * parts)
            for s in whole.stages
        ),
        pools=tuple(
            Pool(None if pool.capacity is None else pool.capacity * parts, pool.static * parts) for pool in whole.pools
        ),
        resolution=whole.resolution / parts,
        microbatch_scale=tuple(scale),
        queues=tuple(range(problem.placement.stages)) if fixed else (),
    )


def finer(problem: Problem, parts: int) -> Problem:
    """Every tick becomes `parts` ticks; times in the file's unit stay what they are."""
    if parts == 1:
        return problem
    return replace(
        problem,
        stages=tuple(_finer(stage, parts) for stage in problem.stages),
        links=tuple(tuple(lag * parts for lag in row) for row in problem.links),
        tick=problem.tick / parts,
    )


def _finer(stage: Stage, parts: int) -> Stage:
    return replace(
        stage,
        forward=stage.forward * parts,
        backward=stage.backward * parts,
        weight=None if stage.weight is None else stage.weight * parts,
        fused=stage.fused * parts,
        transfer=stage.transfer * parts,
        overlapped=None if stage.overlapped is None else stage.overlapped * parts,
        offload=stage.offload
        and stage.offload._replace(out_ticks=stage.offload.out_ticks * parts, in_ticks=stage.offload.in_ticks * parts),
        recompute=tuple(way._replace(ticks=way.ticks * parts) for way in stage.recompute),
        tasks=tuple((kind, tuple(t._replace(ticks=t.ticks * parts) for t in tasks)) for kind, tasks in stage.tasks),
    )


def in_ticks_of(problem: Problem, value: Value, of: Problem) -> Value:
    """A value in ticks of one problem as a value in those of another."""
    return value if problem.tick == of.tick else simplest(value * of.tick / problem.tick)
