"""A problem in finer ticks, for periods and spans that are fractions of a tick."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from math import gcd, lcm

from pipesched.problem.attainable_spans import Value, simplest
from pipesched.problem.device_resources import Pool
from pipesched.problem.problem import Problem
from pipesched.problem.stage import scaled_stage


def with_microbatch_scale(problem: Problem, scale: Sequence[Fraction], fixed: bool) -> Problem:
    """The same problem with a factor for each micro-batch, in ticks and memory in which all products are integers.

    `fixed` keeps micro-batches in order on every stage. Where all factors are 1 nothing changes: micro-batches that
    are alike may be renumbered, so that their order is no restriction.
    """
    if set(scale) <= {1}:
        return problem
    parts = lcm(*(one.denominator for one in scale))
    return replace(
        finer_memory(finer(problem, parts), parts),
        microbatch_scale=tuple(scale),
        queues=tuple(range(problem.placement.stages)) if fixed else (),
    )


def finer(problem: Problem, parts: int) -> Problem:
    """Every tick becomes `parts` ticks; times in the file's unit stay what they are."""
    if parts == 1:
        return problem
    return replace(
        problem,
        stages=tuple(replace(scaled_stage(s, parts, 1), transfer=s.transfer * parts) for s in problem.stages),
        links=tuple(tuple(lag * parts for lag in row) for row in problem.links),
        tick=problem.tick / parts,
    )


def finer_memory(problem: Problem, parts: int) -> Problem:
    """Every unit of memory becomes `parts` of them; amounts in the file's unit stay what they are."""
    if parts == 1:
        return problem
    return replace(
        problem,
        stages=tuple(replace(scaled_stage(s, 1, parts), static=s.static * parts) for s in problem.stages),
        pools=tuple(
            Pool(None if pool.capacity is None else pool.capacity * parts, pool.static * parts)
            for pool in problem.pools
        ),
        host_pools=tuple(
            host._replace(capacity=None if host.capacity is None else host.capacity * parts)
            for host in problem.host_pools
        ),
        resolution=problem.resolution / parts,
    )


def in_common_steps(problems: Sequence[Problem]) -> list[Problem]:
    """Problems in the coarsest ticks and units of memory that all of them can be counted in."""
    tick, resolution = (_common([getattr(one, key) for one in problems]) for key in ("tick", "resolution"))
    return [finer_memory(finer(one, int(one.tick / tick)), int(one.resolution / resolution)) for one in problems]


def _common(steps: Sequence[Fraction]) -> Fraction:
    """The largest step of which all these are multiples."""
    denominator = lcm(*(step.denominator for step in steps))
    return Fraction(gcd(*(int(step * denominator) for step in steps)), denominator)


def in_ticks_of(problem: Problem, value: Value, of: Problem) -> Value:
    """A value in ticks of one problem as a value in those of another."""
    return value if problem.tick == of.tick else simplest(value * of.tick / problem.tick)
