"""The parts of the engine that the ablation leaves out one at a time: their names, and the engine without each.

Parts and openings are left out by the names under which `Solution.parts` counts their seconds. Bounds of one family are
left out of the analytic ones; background local search, and a core of its own for one, are fields of the engine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from pipesched.problem.problem import Problem
from solver.bounds.analytic.catalogue import BOUNDS
from solver.engine.clock import BESIDE
from solver.engine.engine import ENGINE
from solver.engine.opening.analytic_bounds import AnalyticBounds
from solver.engine.opening.published import Published
from solver.engine.opening.sequential import Sequential
from solver.engine.parts.core_guided import CoreGuided
from solver.engine.parts.exact_model import ExactModel
from solver.engine.parts.mirrored_schedules import MirroredSchedules
from solver.engine.parts.tuned_lists import TunedListSchedules
from solver.engine.search import Engine, InTurn, ways_of
from solver.engine.search import Part as EnginePart

_LOAD = "load"
# They give a first schedule where nothing else does, or are for problems of other kinds than these.
NO_PARTS = ("one micro-batch after the other", "orders of micro-batches")


@dataclass(frozen=True)
class Part:
    """A part that is left out, and the problems on which that may make a difference.

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
    """The engine but for what has these names, also where a part searches another problem."""

    def inner(part: EnginePart) -> EnginePart:
        return replace(part, engine=without(part.engine, *names)) if isinstance(part, MirroredSchedules) else part

    opening = tuple(one for one in engine.opening if one.name not in names)
    ways = [
        InTurn(part.name, tuple(inner(way) for way in ways_of(part) if way.name not in names)) for part in engine.parts
    ]
    return replace(engine, opening=opening, parts=tuple(ways))


def plain() -> Engine:
    """Published and list schedules, then CP-SAT on plain intervals, with the load for a bound."""
    opening = (Published(share=0.5), Sequential())
    parts = (TunedListSchedules(), ExactModel(literals=False))
    bounds = AnalyticBounds(load_only=True)
    return replace(ENGINE, bounds=bounds, opening=opening, parts=parts, raise_bounds=False, beside=False)


def _bounds(*kinds: str, name: str = "") -> Part:
    """Families of analytic bounds, whose certificates are of a kind of the same name."""
    left_out = replace(ENGINE, bounds=AnalyticBounds(left_out=frozenset(kinds)))
    return Part(name or f"bound: {kinds[0]}", left_out, kinds=frozenset(kinds))


def _engine_parts() -> Iterator[Part]:
    """Each opening and part that can serve a problem of plain passes."""
    names = [*(one.name for one in ENGINE.opening), *(one.name for one in ENGINE.ways)]
    for name in dict.fromkeys(names):
        if name == "CP-SAT":
            yield _part(name, called="CP-SAT over the full horizon")
        elif name == "diagrams of all orders":
            yield _part(name, where=lambda problem: not problem.overlaps)
            yield _part(name, called="diagrams of all orders and blocks", where=lambda problem: problem.overlaps)
        elif name not in NO_PARTS:
            yield _part(name)


def _part(name: str, *others: str, called: str = "", where: Callable[[Problem], bool] = lambda _: True) -> Part:
    """A part by its name, or several that have the same purpose."""
    names = (name, *others)
    return Part(called or name, without(ENGINE, *names), names, frozenset((called or name,)), where)


def _parts() -> tuple[Part, ...]:
    families = [bound.name for bound in BOUNDS if bound.name != _LOAD and not bound.several_streams]
    return (
        _bounds(*families, name="analytic bounds but the load"),
        *map(_bounds, families),
        *_engine_parts(),
        Part(BESIDE, replace(ENGINE, beside=False), (BESIDE,)),
        Part("a core of its own", replace(ENGINE, dedicated_part=None), (CoreGuided().name,)),
    )


PARTS = _parts()
