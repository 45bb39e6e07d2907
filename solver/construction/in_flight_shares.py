"""Shares of a device's memory: the number of micro-batches of each stage that may be in flight at once."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

from pipesched.problem.passes import BW, F, Pass
from pipesched.problem.problem import Problem
from pipesched.problem.quantities import StageId, Ticks


def in_flight_shares(problem: Problem) -> dict[StageId, int]:
    """Return by stage how many micro-batches may be in flight at once: its share of memory, at least 1.

    So a device's memory is shared by its stages. Shares are rounded to the nearest number, so that together they may
    exceed the memory. Activations live for a round trip, so in the steady state a stage needs memory in proportion to
    its round trip. The stages of a device have no entry if its memory has no limit, or if none of them has activations.
    """
    network, shares = problem.network, dict[int, int]()
    for device, capacity in enumerate(problem.room):
        stages = problem.placement.stages_of[device]
        if capacity is None:
            continue
        times = {s: _round_trip(problem, s) for s in stages}
        product_of_all = sum(times[s] * network.memory_in_flight[s] for s in stages)
        if product_of_all:
            shares |= {s: max(1, round(Fraction(capacity * times[s], product_of_all))) for s in stages}
    return shares


def _round_trip(problem: Problem, stage: StageId) -> Ticks:
    """Return the ticks from the start of a forward of the stage to the end of its backward, if nothing waits."""
    chain = problem.placement.chains[problem.placement.chain_index[stage]]
    later = chain[chain.index(stage) :]
    passes = sum(problem.duration(Pass(kind, s, 0)) for kind in (F, BW) for s in later)
    return passes + sum(problem.lag(one, other) + problem.lag(other, one) for one, other in pairwise(later))
