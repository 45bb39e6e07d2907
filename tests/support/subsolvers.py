"""A subsolver made for tests, and a search that tests share."""

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
    """A subsolver that serves every problem and needs no compiled code; each test defines the work of its slices."""

    name: str
    parallel: bool = True
    restarts: bool = False

    def serves(self, _: Search) -> bool:
        return True

    def kernels(self, _: Search) -> Kernels | None:
        return None


def open_search(limits: Limits, engine: Engine) -> Search:
    """Return a search that is not finished: its best schedule is 55 ticks above the bound."""
    search = Search(problem(3, 6, memory={"capacity": 2}), limits, lambda _: None, Event(), engine)
    search.offer_order(sequential(search.problem))
    return search
