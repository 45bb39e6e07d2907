"""On which problems and devices a branch of a bound holds, and problems of many round trips in a row."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from benchmarks.proofs.branch import Likely
from pipesched.problem.problem import Problem

ROW = Likely(tight=1, unlimited=0, long_links=0.6, fewest=3, most=5, linear=0.8, short_whole=0.3, whole_only=0.3)
ROW_OF_SOME = replace(ROW, linear=0, fewest=2, whole_only=0.6)


def _freed(problem: Problem, device: int) -> set[str]:
    """The parts that B gives back on the device's stages, in the terms of `Likely`."""
    network = problem.network
    storing = [s for s in problem.placement.stages_of[device] if network.memory_in_flight[s] and problem.splittable]
    freed = network.freed_by_backward
    return {"none" if not freed[s] else _sign(freed[s], network.memory_in_flight[s]) for s in storing}


def _sign(freed: int, activation: int) -> str:
    return "less" if freed < 0 else "all" if freed == activation else "part"


def with_freed(*words: str) -> Callable[[Problem, int], bool]:
    """Where B gives back one of these on the device."""
    return lambda problem, device: bool(_freed(problem, device) & set(words))


def several_stages(problem: Problem, device: int) -> bool:
    """True if the device has several stages."""
    return len(problem.placement.stages_of[device]) > 1


def one_stage(problem: Problem, device: int) -> bool:
    """True if the device has one stage."""
    return len(problem.placement.stages_of[device]) == 1


def never_split(problem: Problem, _: int) -> bool:
    """True if every backward is full."""
    return not problem.splittable
