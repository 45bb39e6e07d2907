"""What decision diagrams of all orders have proved so far."""

from __future__ import annotations

from fractions import Fraction

from pipesched.results.certificate import Certificate
from pipesched.results.diagram_evidence import Diagram
from solver.engine.search import Search
from solver.local_search.units.operation_units import modes_matter


def proved_by_all_orders(search: Search) -> list[int | Fraction]:
    """The values of those that leave out no order."""
    return [one.value for one in search.incumbent.state.certificates if _of_all_orders(one)]


def cheapest_modes_prove_nothing(search: Search) -> bool:
    """Whether modes are open and other bounds prove as much: more labels have not helped then.

    In a diagram a gradient takes as long as if its backward were split, and its device no more work than if it were
    full.
    """
    own = max(proved_by_all_orders(search), default=None)
    others = [one.value for one in search.incumbent.state.certificates if not _of_all_orders(one)]
    return own is not None and own <= max(others, default=0) and modes_matter(search.problem)


def _of_all_orders(one: Certificate) -> bool:
    return isinstance(one.evidence, Diagram) and one.evidence.below is None
