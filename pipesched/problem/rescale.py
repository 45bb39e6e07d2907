"""Changes of a problem's tick and unit of memory, so that fractions become whole, or numbers small."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import chain
from math import gcd, lcm

from pipesched.problem.attainable_spans import Value, simplest
from pipesched.problem.features.device_resources import Pool
from pipesched.problem.problem import Problem
from pipesched.problem.quantities import MemorySteps
from pipesched.problem.scaled_stage import numbers_of, scaled_stage


def with_microbatch_scale(problem: Problem, scale: Sequence[Fraction], fixed: bool) -> Problem:
    """Return the problem with a factor for each micro-batch (`scale`).

    Its ticks and steps of memory are such that all products are whole. With `fixed`, micro-batches keep their order on
    every stage. If all factors are 1, the problem is returned unchanged: equal micro-batches may be renumbered, so a
    fixed order is no restriction. `BadInput` if there is not one factor above 0 for each micro-batch, and for a problem
    with blocks, passes for parameters, or `links` whose two directions differ.
    """
    if set(scale) <= {1}:
        return problem
    parts = lcm(*(one.denominator for one in scale))
    return replace(
        finer_memory(finer(problem, parts), parts),
        walks=replace(
            problem.walks,
            queues=tuple(range(problem.placement.stages)) if fixed else (),
            scale=tuple(scale),
        ),
    )


def finer(problem: Problem, parts: int | Fraction) -> Problem:
    """Return the problem with each tick divided into `parts`, so that it has `parts` times as many, smaller ticks.

    Times in the file's unit stay the same. All times in ticks must become whole numbers; fractions would be cut off.
    """
    if parts == 1:
        return problem
    return replace(
        problem,
        stages=tuple(replace(scaled_stage(s, parts, 1), transfer=int(s.transfer * parts)) for s in problem.stages),
        links=tuple(tuple(int(lag * parts) for lag in row) for row in problem.links),
        units=problem.units.with_finer_ticks(parts),
    )


def finer_memory(problem: Problem, parts: int | Fraction) -> Problem:
    """Return the problem with each step of memory divided into `parts`.

    Amounts in the file's unit stay the same. All amounts in steps must become whole numbers; fractions would be cut
    off.
    """
    if parts == 1:
        return problem

    def whole(capacity: MemorySteps | None) -> MemorySteps | None:
        return None if capacity is None else int(capacity * parts)

    return replace(
        problem,
        stages=tuple(replace(scaled_stage(s, 1, parts), static=int(s.static * parts)) for s in problem.stages),
        pools=tuple(Pool(whole(pool.capacity), int(pool.static * parts)) for pool in problem.pools),
        resources=replace(
            problem.resources,
            hosts=tuple(host._replace(capacity=whole(host.capacity)) for host in problem.resources.hosts),
        ),
        units=problem.units.with_finer_memory(parts),
    )


def coarsest(problem: Problem) -> Problem:
    """Return the problem in the largest tick and step of memory in which all of its numbers are whole.

    That includes their products with the factors of micro-batches.
    """
    times, memory = [[stage.transfer for stage in problem.stages]], [[stage.static for stage in problem.stages]]
    for stage in problem.stages:
        ticks, amounts = numbers_of(stage)
        times.append(ticks)
        memory.append(amounts)
    times += map(list, problem.links)
    memory += [[pool.capacity or 0, pool.static] for pool in problem.pools]
    memory += [[host.capacity or 0] for host in problem.resources.hosts]
    tick, size = (max(1, gcd(*chain.from_iterable(rows)) // problem.walks.parts) for rows in (times, memory))
    return finer_memory(finer(problem, Fraction(1, tick)), Fraction(1, size))


def in_common_steps(problems: Sequence[Problem]) -> list[Problem]:
    """Return the problems converted to the largest tick and unit of memory common to all of them."""
    tick, resolution = (_common([getattr(one, key) for one in problems]) for key in ("tick", "resolution"))
    return [finer_memory(finer(one, int(one.tick / tick)), int(one.resolution / resolution)) for one in problems]


def _common(steps: Sequence[Fraction]) -> Fraction:
    """Return the largest step of which all `steps` are multiples."""
    denominator = lcm(*(step.denominator for step in steps))
    return Fraction(gcd(*(int(step * denominator) for step in steps)), denominator)


def in_ticks_of(problem: Problem, value: Value, of: Problem) -> Value:
    """Convert a value in ticks of the problem `of` to ticks of `problem`."""
    return value if problem.tick == of.tick else simplest(value * of.tick / problem.tick)
