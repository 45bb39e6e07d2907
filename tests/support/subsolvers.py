"""Parts of an engine for tests, and a search that they share."""

from __future__ import annotations

from dataclasses import dataclass
from threading import Event

from solver.construction.list_scheduling import sequential
from solver.engine.kernels import Kernels
from solver.engine.search import Engine, Search
from solver.limits import Limits
from tests.support.makers import problem


@dataclass(frozen=True)
class MadeSubsolver:
    """A part that serves every problem and needs no compiled code; each test says what its slices do."""

    name: str
    parallel: bool = True
    restarts: bool = False

    def serves(self, _: Search) -> bool:
        return True

    def kernels(self, _: Search) -> Kernels | None:
        return None


def open_search(limits: Limits, engine: Engine) -> Search:
    """With a gap of 55 ticks."""
    search = Search(problem(3, 6, memory={"capacity": 2}), limits, lambda _: None, Event(), engine)
    search.offer_order(sequential(search.problem))
    return search
