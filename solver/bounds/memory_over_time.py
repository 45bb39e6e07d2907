"""Memory over time: activations take memory from forward to backward, and a device has only so much of it."""

from __future__ import annotations

from fractions import Fraction

from pipesched.passes import BW, B, Pass, W
from pipesched.problem import Problem
from solver.bounds.paths import Paths


def area(problem: Problem, paths: Paths, stage: int) -> int:
    """The least memory times ticks that one micro-batch takes for a stage."""
    activation, freed = problem.memory.activation[stage], problem.memory.freed[stage]
    waiting = activation * (paths.forward[stage] + paths.round_trip[stage])
    if not problem.splittable:
        return waiting + activation * paths.gradient[stage]
    b, w, whole = (problem.duration(Pass(kind, stage, 0)) for kind in (B, W, BW))
    split = (activation - min(0, freed)) * b + (activation - freed) * w
    whole = min(whole, paths.gradient[stage]) if problem.costs.overlapped is not None else whole
    return waiting + min(split, activation * whole)


def unused_at_first(
    problem: Problem, paths: Paths, stages: list[int], capacity: int, taken: int | Fraction
) -> Fraction:
    """The memory times ticks that stay unused at first, since forwards alone fill the memory and take their time.

    `taken` is what the passes use in all; nothing is claimed if that fits before the memory could be full.
    """
    memory = problem.memory
    each = _least_ticks_each(problem, paths, stages)
    # After t ticks one activation and t / each of those before it are held at most.
    empty = max(0, capacity - max(memory.activation[s] for s in stages))
    unused = empty * empty * each / 2
    return unused if taken + unused >= capacity * empty * each else Fraction(0)


def held_at_last_forward(problem: Problem, paths: Paths, stages: list[int], capacity: int) -> Fraction:
    """The most memory times ticks that activations held at the end of a device's last forward have yet to take.

    Each was begun a forward before the next, so it has taken some by then: all but what its W takes, or the time since.
    """
    memory = problem.memory
    held = [s for s in stages if memory.activation[s]]
    if not held:
        return Fraction(0)
    each = _least_ticks_each(problem, paths, stages)
    weights = [0] * len(held)
    if problem.splittable:
        weights = [(memory.activation[s] - memory.freed[s]) * problem.duration(Pass(W, s, 0)) for s in held]
    # By unit of memory, the longest first: it falls by `each` from one unit to the one begun before, down to a W.
    longest = max(Fraction(area(problem, paths, s), memory.activation[s]) for s in held)
    least = max(Fraction(weight, memory.activation[s]) for weight, s in zip(weights, held, strict=True))
    falling = min(Fraction(capacity), max(Fraction(0), longest - least) / each) if each else Fraction(capacity)
    return falling * longest - each * falling * falling / 2 + (capacity - falling) * least


def _least_ticks_each(problem: Problem, paths: Paths, stages: list[int]) -> Fraction:
    """The least ticks of forward for a unit of activation."""
    activation = problem.memory.activation
    return min((Fraction(paths.forward[s], activation[s]) for s in stages if activation[s]), default=Fraction(0))
