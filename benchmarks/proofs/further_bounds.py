"""The bounds that are not analytic, as the stress test asks for them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import product
from math import ceil
from threading import Event
from typing import Any

from pipesched.problem.problem import Problem
from pipesched.results.certificate import Certificate
from pipesched.schedule.rescale import value_of
from solver.bounds.analytic.catalogue import certificates
from solver.construction.list_scheduling import sequential
from solver.construction.timing import best_times
from solver.diagram.all_orders import bounds_of_all_orders
from solver.diagram.by_device import bounds_by_device
from solver.diagram.modelled_stages import walked_chains
from solver.diagram.threshold_bounds import bounds_of_devices, bounds_of_more_stages, bounds_of_stages
from solver.diagram.threshold_search import ThresholdSearch

Further = Callable[[Problem], Iterable[Certificate]]
Bounds = Callable[..., Iterable[Certificate]]


def _proved_and_known(problem: Problem) -> tuple[int, int]:
    """The best bound in words, and the value of a schedule, one micro-batch after the other; in ticks."""
    proved = certificates(problem, problem.objective)[0].value_ticks
    return ceil(proved), ceil(value_of(problem, best_times(problem, sequential(problem))))


def _threshold_search(problem: Problem, proved: float, known: float, width: int) -> ThresholdSearch:
    return ThresholdSearch(problem, Event(), lambda: (proved, known), width)


def all_orders(*widths: int, blocks: bool = False) -> Further:
    """Of problems with blocks or without: so many labels of a state kept, of 1 or 2 nearly all merged."""

    def found(problem: Problem) -> Iterator[Certificate]:
        for width in widths if problem.overlaps == blocks else ():
            yield from bounds_of_all_orders(problem, Event(), width)

    return found


def without_blocks(further: Further) -> Further:
    """Nothing of problems with blocks."""
    return lambda problem: () if problem.overlaps else further(problem)


def diagrams_by_threshold(problem: Problem) -> Iterable[Certificate]:
    """With nearly all labels merged and with all distinct; from the best bound in words, or a little less, on.

    By small steps, and to the value of a schedule that is no good. Nothing below what was claimed before is looked for
    again: no value proves more than itself.
    """
    proved, known = _proved_and_known(problem)
    claimed = proved - 1.0
    for width, most in product((1, 64), (known, proved + 16)):
        for one in bounds_of_devices(_threshold_search(problem, claimed, most, width)):
            claimed = max(claimed, float(one.value_ticks))
            yield one


def diagrams_of_stages(problem: Problem) -> Iterable[Certificate]:
    """From each device's stages on."""
    return _of_each(problem, bounds_of_stages, range(problem.devices))


def diagrams_of_more_stages(problem: Problem) -> Iterable[Certificate]:
    """Guided by the stages of each device of a chain, and by its first and its middle stage alone."""
    smaller_diagrams = list[tuple[int, ...]]()
    for chain in walked_chains(problem):
        where = problem.placement.stage_device
        of_devices = [tuple(stage for stage in chain if where[stage] == one) for one in range(problem.devices)]
        smaller_diagrams += dict.fromkeys((*filter(None, of_devices), chain[:1], chain[len(chain) // 2 :][:1]))
    return _of_each(problem, bounds_of_more_stages, smaller_diagrams)


def _of_each(problem: Problem, bounds: Bounds, of: Iterable[Any]) -> Iterable[Certificate]:
    """Certificates for each of these; as large as those before, so that each may claim."""
    proved, known = _proved_and_known(problem)
    claimed = proved - 1.0
    for each in of:
        since = claimed
        for width, most in ((1, known), (64, known), (64, proved + 16)):
            for one in bounds(_threshold_search(problem, since, most, width), each):
                since = float(one.value_ticks)
                claimed = max(claimed, since - 1)
                yield one


def diagrams_by_device(problem: Problem) -> Iterable[Certificate]:
    """Below the value of a schedule that is no good, and little above what is proved; labels merged on several devices.

    Up to what other bounds prove, too, so that all may claim.
    """
    proved, known = _proved_and_known(problem)
    for most, width in product((known, proved + 16), (1, 64)):
        for one in bounds_by_device(_threshold_search(problem, proved - 1.0, most, width)):
            proved = max(proved, int(one.value_ticks))
            yield one
