"""Attacks of a bound, and of the check of it, that end at the first wrong claim: what a mutant must not survive."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from itertools import islice
from math import ceil
from threading import Event
from typing import NamedTuple

import numpy as np

from benchmarks.proofs.bound_attack import problems
from benchmarks.proofs.bound_branches import BRANCHES
from benchmarks.proofs.branch import Branch
from benchmarks.proofs.exhaustive.optimum import NotTiny
from benchmarks.proofs.in_order import compared_to
from pipesched.checking.check import check_bound
from pipesched.checking.diagram.completion import Layer, completions
from pipesched.checking.diagram.walk import walk_along
from pipesched.checking.finding import Verdict
from pipesched.problem.problem import Problem
from pipesched.results.certificate import Certificate
from pipesched.results.crossing_evidence import CrossingChains, CrossingStepsBelow, CrossingWhole, GuidedStages
from solver.bounds.analytic.critical_paths import Paths
from solver.bounds.crossing_below.remaining import Remaining, remaining
from solver.bounds.crossing_blocks.blocks import block_ticks
from solver.bounds.crossing_steps.steps import steps_of, walked_chains

# Orders that are tried for one problem.
_STEPS = 3_000


class Refuted(NamedTuple):
    """The problems looked at until something was wrong, their branch, and what was wrong."""

    problems: int
    branch: str
    how: str


def bound_refuted(names: tuple[str, ...], count: int) -> Refuted | None:
    """By one of so many problems of these branches, whose optimum is below what the bound claims."""
    return _first(names, count, "claim above the optimum", lambda _, problem, value: _compared(problem, value) is None)


def check_refuted(names: tuple[str, ...], count: int) -> Refuted | None:
    """By one of so many problems: the check proves more than the optimum, or not what the bound claims."""
    return _first(names, count, "wrong verdict of the check", _verdict_wrong)


def rests_differ(names: tuple[str, ...], count: int) -> Refuted | None:
    """In one of so many problems: bound and check find other rests, each from the end of its own relaxation.

    No optimum is asked for, so that there may be more micro-batches, and memory for more of them.
    """
    return _first(
        names, count, "rests of bound and check differ", lambda _, problem, __: any(map(_differs, _both(problem)))
    )


def _first(
    names: tuple[str, ...], count: int, how: str, wrong: Callable[[Branch, Problem, Fraction], bool]
) -> Refuted | None:
    """The problems are shared out among the branches."""
    for branch in (one for one in BRANCHES if one.name in names):
        for seen, (problem, claim) in enumerate(islice(problems(branch, 0), ceil(count / len(names))), 1):
            with suppress(NotTiny):
                if wrong(branch, problem, claim.value):
                    return Refuted(seen, branch.name, how)
    return None


def _both(problem: Problem) -> Iterator[tuple[Remaining | None, list[Layer]]]:
    """What remains as bound and as check have it, on all devices of each chain."""
    more = [None if room is None else 2 * room for room in problem.room]
    problem = replace(problem.with_room(more), microbatches=problem.microbatches + 2)
    where, paths = problem.placement.stage_device, Paths(problem)
    for chain in walked_chains(problem):
        devices = tuple(dict.fromkeys(where[stage] for stage in chain))
        steps = steps_of(problem, paths, chain, devices)
        if steps is not None:
            yield (
                remaining(steps, block_ticks(problem, chain, devices), 10**6, Event()),
                completions(walk_along(problem, chain, (), only_last=False)),
            )


def _differs(both: tuple[Remaining | None, list[Layer]]) -> bool:
    own, check = both
    return own is not None and not all(
        np.array_equal(one.keys, other.keys) and np.array_equal(one.rests, other.follows)
        for one, other in zip(own.layers, check, strict=True)
    )


def _compared(problem: Problem, value: Fraction) -> bool | None:
    """Whether some schedule has the value; None where one is below it."""
    best = compared_to(problem, problem.objective, value, _STEPS)
    return None if best.below else best.attained


def _verdict_wrong(branch: Branch, problem: Problem, value: Fraction) -> bool:
    """Of the strongest certificate as it is; of a tick more than the value; of that with a value above it."""
    own = max(branch.further(problem), key=lambda one: one.value)
    if check_bound(problem, own).verdict is not Verdict.VERIFIED:
        return True
    if not _compared(problem, value):
        return False
    more = replace(own, value=value + 1)
    return any(check_bound(problem, one).verdict is Verdict.VERIFIED for one in (more, _raised(more)))


def _raised(claim: Certificate) -> Certificate:
    own = claim.evidence
    return (
        replace(claim, evidence=replace(own, below=own.below + 5))
        if isinstance(own, CrossingStepsBelow | CrossingWhole | GuidedStages | CrossingChains)
        else claim
    )
