"""The parts of the engine that the ablation leaves out one at a time: their names, and the engine without each.

Most parts are phases, which are left out by the name under which `Solution.parts` counts their seconds. Bounds of one
family are left out of the analytic ones; what runs within a phase or beside phases has a flag of the engine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from pipesched.problem.problem import Problem
from solver.bounds.analytic.catalogue import BOUNDS
from solver.engine.engine import ENGINE
from solver.engine.part_times import DESTRUCTIVE, MEANWHILE
from solver.engine.phases.bounds.analytic_bounds import AnalyticBounds
from solver.engine.phases.exact_model import ExactModel
from solver.engine.phases.list_schedules import ListSchedules
from solver.engine.phases.mirrored_schedules import MirroredSchedules
from solver.engine.phases.published import Published
from solver.engine.phases.sequential import Sequential
from solver.engine.search import Engine, Phase

_LOAD = "load"
# They give a first schedule where nothing else does, or are left out by flags or with the problems of other engines.
NO_PARTS = (
    "one micro-batch after the other",
    "orders of micro-batches",
    "destructive bounds of a job shop",
    "destructive bounds alone",
)


@dataclass(frozen=True)
class Part:
    """What is left out, and where that may tell something.

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


def without_phases(engine: Engine, *names: str) -> Engine:
    """The engine but for the phases of these names, also where a phase searches another problem."""

    def kept(phases: tuple[Phase, ...]) -> tuple[Phase, ...]:
        return tuple(map(inner, (phase for phase in phases if phase.name not in names)))

    def inner(phase: Phase) -> Phase:
        return (
            replace(phase, engine=without_phases(phase.engine, *names))
            if isinstance(phase, MirroredSchedules)
            else phase
        )

    return replace(engine, opening=kept(engine.opening), phases=kept(engine.phases))


def plain() -> Engine:
    """Published and list schedules, then CP-SAT on plain intervals, with the load for a bound."""
    phases = (ListSchedules(), ExactModel(literals=False))
    opening = (Published(share=0.5), Sequential())
    bounds = AnalyticBounds(load_only=True)
    return replace(ENGINE, bounds=bounds, opening=opening, phases=phases, raise_bounds=False)


def _bounds(*kinds: str, name: str = "") -> Part:
    """Families of analytic bounds, whose certificates are of a kind of the same name."""
    left_out = replace(ENGINE, bounds=AnalyticBounds(left_out=frozenset(kinds)))
    return Part(name or f"bound: {kinds[0]}", left_out, kinds=frozenset(kinds))


def _phases() -> Iterator[Part]:
    """Each phase of the engine, or several that do the same at different times."""
    for name in dict.fromkeys(phase.name for phase in (*ENGINE.opening, *ENGINE.phases)):
        if name == "CP-SAT":
            yield _phase(name, "CP-SAT, intervals", called="CP-SAT over the full horizon")
        elif name == "diagrams of all orders":
            yield _phase(name, where=lambda problem: not problem.overlaps)
            yield _phase(name, called="diagrams of all orders and blocks", where=lambda problem: problem.overlaps)
        elif name not in (*NO_PARTS, "CP-SAT, intervals"):
            yield _phase(name)


def _phase(name: str, *others: str, called: str = "", where: Callable[[Problem], bool] = lambda _: True) -> Part:
    """A phase, or several that do the same at different times."""
    names = (name, *others)
    return Part(called or name, without_phases(ENGINE, *names), names, frozenset((called or name,)), where)


def _flag(name: str, flag: str, *takes: str) -> Part:
    return Part(name, replace(ENGINE, **{flag: False}), takes)  # type: ignore[arg-type]


def _parts() -> tuple[Part, ...]:
    families = [bound.name for bound in BOUNDS if bound.name != _LOAD and not bound.several_streams]
    return (
        _bounds(*families, name="analytic bounds but the load"),
        *map(_bounds, families),
        *_phases(),
        _flag("destructive bounds", "destructive", DESTRUCTIVE),
        _flag(MEANWHILE, "meanwhile", MEANWHILE),
    )


PARTS = _parts()
