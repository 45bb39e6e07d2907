"""Phase: better lower bounds alone, where none were looked for during local search."""

from __future__ import annotations

from dataclasses import dataclass

from solver.engine.bound_search import bounds, take_all
from solver.engine.search import Search


@dataclass(frozen=True)
class RaiseBounds:
    """Destructive bounds, for all that is left of the time."""

    name: str = "destructive bounds alone"

    def applies(self, search: Search) -> bool:
        return search.engine.raise_bounds

    def run(self, search: Search) -> None:
        take_all(search, bounds(search, search.clock.left(), search.stop))
