"""What jobs of the local search anneal with: temperatures; where modes are open also how many moves change them."""

from __future__ import annotations

from solver.local_search.annealing import AnnealingParameters

# Low temperatures refine an order, high ones leave it; which helps differs from problem to problem.
_STRONG = (
    AnnealingParameters(hot=1.0, cold=0.05, evenness=0.1, filling=0),
    AnnealingParameters(hot=0.5, cold=0.1, evenness=0.1, filling=0),
    AnnealingParameters(hot=1.0, cold=0.1, evenness=0.03, filling=0),
)
_GENTLE = (
    AnnealingParameters(hot=0.03, cold=0.005, evenness=0.3, filling=0.3),
    AnnealingParameters(hot=0.1, cold=0.01, evenness=0.3, filling=0),
    AnnealingParameters(hot=0.03, cold=0.005, evenness=1.0, filling=0.3),
    AnnealingParameters(hot=0.01, cold=0.002, evenness=1.0, filling=0.3),
)
# Where modes are open, changes of modes at a middle temperature come first: they alone get far from a start whose modes
# are poor. The lowest temperatures gain most from a good start: they stand where the first jobs take them that go on
# from the best schedule, since some begin elsewhere. Without changes of modes nothing was gained.
_OPEN_MODES = (
    AnnealingParameters(hot=0.3, cold=0.05, evenness=0.3, filling=0.1, changing=0.3),
    AnnealingParameters(hot=0.1, cold=0.02, evenness=1.0, filling=0.1, changing=0.15),
    AnnealingParameters(hot=0.1, cold=0.02, evenness=0.03, filling=0, changing=0.2),
    AnnealingParameters(hot=0.06, cold=0.01, evenness=1.0, filling=0, changing=0.2),
    AnnealingParameters(hot=0.03, cold=0.005, evenness=0.3, filling=0.3, changing=0.2),
    AnnealingParameters(hot=0.05, cold=0.01, evenness=0.3, filling=0.3, changing=0.2),
    AnnealingParameters(hot=0.1, cold=0.01, evenness=0.1, filling=0, changing=0.05),
)
# From the first number of units on high and low temperatures take turns; from the second on a round is too short for
# high ones.
_SOME_UNITS, _MANY_UNITS = 1_500, 4_000


def parameters_for(units: int, open_modes: bool) -> tuple[AnnealingParameters, ...]:
    """What jobs anneal with, in turn."""
    if open_modes:
        return _OPEN_MODES
    if units >= _MANY_UNITS:
        return _GENTLE
    if units >= _SOME_UNITS:
        return _STRONG[0], _GENTLE[0], _STRONG[1], _GENTLE[1], _STRONG[2]
    return *_STRONG, *_GENTLE[:2]
