"""The catalogue of analytic lower bounds, and the strongest certificate of a problem."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

from pipesched.problem.chains.microbatch_chains import without_scale
from pipesched.problem.problem import Objective, Problem
from pipesched.problem.relaxed.without_lookups import without_lookups
from pipesched.problem.relaxed.without_stage_arcs import without_stage_arcs
from pipesched.registry import Registry
from pipesched.results.certificate import Certificate


@dataclass(frozen=True)
class Bound:
    """A lower bound on the makespan or span of a problem: one certificate for each device that it concerns.

    Of certificates of equal value the one of the lowest `rank` comes first. `several_streams` says whether it holds too
    where passes are several tasks, which other tasks may run beside or between; `between_chains`, whether it knows of
    arcs between chains, without which the others see the problem.
    """

    name: str
    certify: Callable[[Problem, Objective], list[Certificate]]
    rank: int = 9
    several_streams: bool = False
    between_chains: bool = False


_RELAXED = "So much it takes even without copies and recomputation, and with memory for every activation."

BOUNDS: Registry[Bound] = Registry("solver.bounds.analytic", "bound")


Certify = Callable[[], list[Certificate]]


def certificates(
    problem: Problem, objective: Objective, run: Callable[[str, Certify], list[Certificate]] | None = None
) -> list[Certificate]:
    """Every certificate of every bound that holds for the problem, strongest first.

    `run` computes each bound but the load, whose certificates are always there; it may give up on one. Where
    activations may be offloaded or recomputed, bounds are those of the problem that keeps all of them and has no limit
    on memory: every schedule becomes one of that problem when its copies and recomputations are left out.
    """
    whole = without_lookups(without_scale(problem))
    problem = without_stage_arcs(whole)
    if problem.network.options:
        relaxed = problem.keeping_activations().with_room([None] * problem.devices)
        kept = certificates(relaxed, objective, run)
        return [replace(one, text=f"{one.text} {_RELAXED}", evidence=None) for one in kept]
    found: list[Certificate] = []
    several = not problem.network.one_task_each
    for bound in sorted(BOUNDS, key=lambda bound: bound.rank):
        if several and not bound.several_streams:
            continue
        certify = partial(bound.certify, whole if bound.between_chains else problem, objective)
        found += certify() if run is None or bound.name == "load" else run(bound.name, certify)
    return sorted(found, key=lambda certificate: -certificate.value_ticks)
