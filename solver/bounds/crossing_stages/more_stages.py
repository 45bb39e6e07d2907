"""The bound by crossings of steps of some stages with one stage more and more labels, where some have proved much.

With many micro-batches the stage that comes behind those of the device keeps what they prove of each micro-batch from
falling; with few it proves nothing more.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil
from threading import Event

from pipesched.problem.problem import Problem
from pipesched.results.certificate import Certificate
from pipesched.results.evidence import CrossingStages
from solver.bounds.crossing_stages.bound import MOST_NUMBERS, WORK, _certificate, _raised
from solver.bounds.crossing_steps.steps import walked_chains

# Labels of a state; with 64 many are merged that prove more apart.
MANY = 512
# The first value is a third of the gap above what is proved: `_raised` begins with a sixteenth of what it is given.
_BOLDER = 5


def bounds_with_one_more(
    problem: Problem, stages: tuple[int, ...], between: tuple[float, float], stop: Event
) -> Iterator[Certificate]:
    """Above what is proved, in ticks, each above those before; the second of `between` is the value of a schedule."""
    where, best = problem.placement.stage_device, ceil(between[0])
    most = best + _BOLDER * (ceil(between[1]) - best)
    for chain in walked_chains(problem):
        if not set(stages) <= set(chain):
            continue
        for after in range(len(chain) - 1, 0, -1):
            if chain[after] in stages or chain[after - 1] not in stages:
                continue
            if sum(where[stage] == where[chain[after - 1]] for stage in stages) < 2:
                continue  # Behind a stage that is not of the device.
            more = tuple(stage for stage in chain if stage in (*stages, chain[after]))
            for found in _raised(problem, chain, more, (best, most), MANY, WORK, MOST_NUMBERS, stop):
                if found.ticks > best:
                    best = found.ticks
                    yield _certificate(problem, best, CrossingStages(more, MANY, found.below))
            return
