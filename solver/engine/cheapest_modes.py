"""Whether crossings of steps, which take the cheapest of open modes, have proved less than other bounds."""

from __future__ import annotations

from solver.bounds.crossing_steps.bound import KIND
from solver.engine.search import Search
from solver.local_search.units.operation_units import modes_matter


def cheapest_modes_prove_nothing(search: Search) -> bool:
    """Whether modes are open and other bounds prove as much as crossings of steps do: more labels have not helped then.

    A gradient takes as long there as if its backward were split, and its device no more work than if it were full.
    """
    certificates = search.incumbent.state.certificates
    own = max((one.value for one in certificates if one.kind == KIND), default=None)
    others = max((one.value for one in certificates if one.kind != KIND), default=0)
    return own is not None and own <= others and modes_matter(search.problem)
