"""Argument: the forwards and gradients of all chains run in some order on the devices that are looked at.

Micro-batches of one chain are alike. If they exchange their names on each stage by the order in which they run there,
what they wait for is still before them, memory holds as much at every instant, and blocks of a forward and a full
backward stay where they are, also those of two chains. So only how many have run each step counts. A device's memory is
shared by the chains: a forward needs what gradients of any of them have given back there, and time for all weight
passes but those whose memory it can do without. Other devices take the least time that they can, from time 0 to a
chain's first step here, and from its last one until its first stage has nothing left.

Of a span the time of the first of the devices counts, from its first start, 0, to its end. What ran elsewhere before
may have ended long ago: it takes no time, and nothing of it says when something after 0 starts at the earliest.
"""

from __future__ import annotations

from pipesched.checking.crossing_chains.orders import least_end_of_all, least_end_on_several
from pipesched.checking.crossing_chains.ways import MOST_TICKS, ways_on
from pipesched.checking.finding import NotCoveredError, RefusedEvidenceError
from pipesched.problem.problem import Objective, Problem
from pipesched.results.crossing_evidence import CrossingChains

# Beyond these the check would take minutes.
_MOST_WIDTH = 512


def crossings_of_chains(problem: Problem, evidence: CrossingChains) -> int:
    """The least end over all orders and blocks, or the value below which they are followed if that is less."""
    if problem.objective is Objective.PERIOD:
        raise RefusedEvidenceError("times count to the end of all or of a device, and the objective is a period")
    if not problem.network.one_task_each or problem.network.options:
        raise NotCoveredError("a pass is several tasks")
    devices = evidence.devices
    if not devices or len(set(devices)) < len(devices) or not set(devices).issubset(range(problem.devices)):
        raise RefusedEvidenceError(f"devices {list(devices)} are none, or not different ones of the problem")
    if not 0 < evidence.width <= _MOST_WIDTH or not 0 <= evidence.below <= MOST_TICKS:
        raise RefusedEvidenceError(f"{evidence.width} orders are kept distinct below {evidence.below}")
    ways = ways_on(problem, devices)
    if len(devices) == 1:
        return least_end_of_all(ways, evidence.width, evidence.below)
    alone = devices if problem.objective is Objective.MAKESPAN else devices[:1]
    each = [ways_on(problem, (one,)) for one in alone]
    return least_end_on_several(ways, each, evidence.width, evidence.below)
