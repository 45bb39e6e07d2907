"""The components of the engine that the ablation leaves out one at a time: their names, and the engine without each.

Subsolvers and construction heuristics are left out by the names under which `Solution.parts` counts their seconds.
Bounds of one family are left out of the analytic ones; background local search, and a core of its own for one
subsolver, are fields of the engine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from pipesched.problem.problem import Problem
from solver.bounds.analytic.catalogue import BOUNDS
from solver.engine.analytic_bounds import AnalyticBounds
from solver.engine.clock import BACKGROUND
from solver.engine.construction.published import PublishedSchedules
from solver.engine.construction.sequential import Sequential
from solver.engine.engine import ENGINE
from solver.engine.search import Engine, RoundRobin, Subsolver, members_of
from solver.engine.subsolvers.core_guided import CoreGuided
from solver.engine.subsolvers.exact_model import ExactModel
from solver.engine.subsolvers.mirrored_schedules import MirroredSchedules
from solver.engine.subsolvers.tuned_lists import TunedListSchedules

_LOAD = "load"
# They give a first schedule where nothing else does, or are for problems of other kinds than these.
NO_PARTS = ("one micro-batch after the other", "orders of micro-batches")


@dataclass(frozen=True)
class Component:
    """A component that is left out, and the problems on which that may make a difference.

    That is where the bound of a solve is one of its `kinds` of certificates, and where its seconds are most of the
    solve; `takes` are their names in `Solution.parts`. Problems for which `where` does not hold are not asked.
    """

    name: str
    engine: Engine
    takes: tuple[str, ...] = ()
    kinds: frozenset[str] = frozenset()
    where: Callable[[Problem], bool] = lambda _: True

    @property
    def variant(self) -> str:
        """The name of the engine without it."""
        return f"no {self.name}"


def without(engine: Engine, *names: str) -> Engine:
    """The engine but for what has these names, also where a subsolver searches another problem."""

    def inner(one: Subsolver) -> Subsolver:
        return replace(one, engine=without(one.engine, *names)) if isinstance(one, MirroredSchedules) else one

    construction = tuple(one for one in engine.construction if one.name not in names)
    subsolvers = [
        RoundRobin(each.name, tuple(inner(one) for one in members_of(each) if one.name not in names))
        for each in engine.subsolvers
    ]
    return replace(engine, construction=construction, subsolvers=tuple(subsolvers))


def plain() -> Engine:
    """Published and list schedules, then CP-SAT on plain intervals, with the load for a bound."""
    construction = (PublishedSchedules(share=0.5), Sequential())
    subsolvers = (TunedListSchedules(), ExactModel(literals=False))
    bounds = AnalyticBounds(load_only=True)
    return replace(
        ENGINE, bounds=bounds, construction=construction, subsolvers=subsolvers, raise_bounds=False, background=False
    )


def _bounds(*kinds: str, name: str = "") -> Component:
    """Families of analytic bounds, whose certificates are of a kind of the same name."""
    left_out = replace(ENGINE, bounds=AnalyticBounds(left_out=frozenset(kinds)))
    return Component(name or f"bound: {kinds[0]}", left_out, kinds=frozenset(kinds))


def _subsolvers() -> Iterator[Component]:
    """Each construction heuristic and subsolver that can serve a problem of plain passes."""
    names = [*(one.name for one in ENGINE.construction), *(one.name for one in ENGINE.members)]
    for name in dict.fromkeys(names):
        if name == "CP-SAT":
            yield _component(name, called="CP-SAT over the full horizon")
        elif name == "diagrams of all orders":
            yield _component(name, where=lambda problem: not problem.overlaps)
            yield _component(name, called="diagrams of all orders and blocks", where=lambda problem: problem.overlaps)
        elif name not in NO_PARTS:
            yield _component(name)


def _component(
    name: str, *others: str, called: str = "", where: Callable[[Problem], bool] = lambda _: True
) -> Component:
    """A part by its name, or several that have the same purpose."""
    names = (name, *others)
    return Component(called or name, without(ENGINE, *names), names, frozenset((called or name,)), where)


def _parts() -> tuple[Component, ...]:
    families = [bound.name for bound in BOUNDS if bound.name != _LOAD and not bound.several_streams]
    return (
        _bounds(*families, name="analytic bounds but the load"),
        *map(_bounds, families),
        *_subsolvers(),
        Component(BACKGROUND, replace(ENGINE, background=False), (BACKGROUND,)),
        Component("a core of its own", replace(ENGINE, dedicated_subsolver=None), (CoreGuided().name,)),
    )


COMPONENTS = _parts()
