"""What jobs of the local search anneal with: temperatures; where modes are open also how many moves change them."""

from __future__ import annotations

from solver.local_search.annealing import AnnealingParameters
from solver.tuning import CHANGING, COLDER, EVENNESS, FILLING, HEATS


def parameters_for(open_modes: bool) -> tuple[AnnealingParameters, ...]:
    """What jobs anneal with, in turn: low temperatures refine an order, high ones leave it."""
    changing = CHANGING if open_modes else 0.0
    return tuple(AnnealingParameters(hot, hot / COLDER, EVENNESS, FILLING, changing=changing) for hot in HEATS)
