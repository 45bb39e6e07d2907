"""The bounds that are not analytic, as the stress test asks for them."""

from __future__ import annotations

from collections.abc import Iterable
from math import ceil
from threading import Event

from pipesched.problem.problem import Problem
from pipesched.results.certificate import Certificate
from pipesched.schedule.rescale import value_of
from solver.bounds.analytic.catalogue import certificates
from solver.construction.list_scheduling import sequential
from solver.construction.timing import best_times
from solver.diagram.all_chains.bound import bounds_of_chains
from solver.diagram.all_orders import bounds_of_all_orders
from solver.diagram.below import bounds_of_devices, bounds_of_more_stages, bounds_of_stages
from solver.diagram.steps import walked_chains


def _known(problem: Problem) -> int:
    """The value of a schedule, in ticks: one micro-batch after the other."""
    return ceil(value_of(problem, best_times(problem, sequential(problem))))


def crossings_of_steps(problem: Problem) -> Iterable[Certificate]:
    """With all labels told apart that there are."""
    return () if problem.overlaps else bounds_of_all_orders(problem, Event(), (64,))


def crossings_merged(problem: Problem) -> Iterable[Certificate]:
    """With nearly all labels of a state merged."""
    return () if problem.overlaps else bounds_of_all_orders(problem, Event(), (1, 2))


def crossings_below(problem: Problem) -> Iterable[Certificate]:
    """With nearly all labels merged and with all told apart; from the best bound in words, or a little less, on.

    By small steps, and to the value of a schedule that is no good. Nothing below what was claimed before is looked for
    again: no value proves more than itself.
    """
    proved, known = ceil(certificates(problem, problem.objective)[0].value_ticks), _known(problem)
    claimed = proved - 1.0
    for width in (1, 64):
        for most in (known, proved + 16):
            for one in bounds_of_devices(problem, Event(), claimed, most, (width,)):
                claimed = max(claimed, float(one.value_ticks))
                yield one


def crossings_of_stages(problem: Problem) -> Iterable[Certificate]:
    """From each device's stages on, as crossings below a value; as much as of devices before, so each may claim."""
    proved, known = ceil(certificates(problem, problem.objective)[0].value_ticks), _known(problem)
    claimed = proved - 1.0
    for device in range(problem.devices):
        since = claimed
        for width, most in ((1, known), (64, known), (64, proved + 16)):
            for one in bounds_of_stages(problem, Event(), since, most, device, width):
                since = float(one.value_ticks)
                claimed = max(claimed, since - 1)
                yield one


def crossings_of_more_stages(problem: Problem) -> Iterable[Certificate]:
    """As with blocks."""
    return () if problem.overlaps else more_stages_with_blocks(problem)


def more_stages_with_blocks(problem: Problem) -> Iterable[Certificate]:
    """Guided by the stages of each device of a chain, and by its first and its middle stage alone; likewise."""
    proved, known = ceil(certificates(problem, problem.objective)[0].value_ticks), _known(problem)
    claimed = proved - 1.0
    for chain in walked_chains(problem):
        where = problem.placement.stage_device
        of_devices = [tuple(stage for stage in chain if where[stage] == one) for one in range(problem.devices)]
        for guide in dict.fromkeys((*filter(None, of_devices), chain[:1], chain[len(chain) // 2 :][:1])):
            since = claimed
            for width, most in ((1, known), (64, known), (64, proved + 16)):
                for one in bounds_of_more_stages(problem, Event(), since, most, guide, width):
                    since = float(one.value_ticks)
                    claimed = max(claimed, since - 1)
                    yield one


def crossings_with_blocks(problem: Problem) -> Iterable[Certificate]:
    """With nearly all labels of a state merged, and with all told apart that there are."""
    return bounds_of_all_orders(problem, Event(), (1, 64)) if problem.overlaps else ()


def crossings_of_chains(problem: Problem) -> Iterable[Certificate]:
    """Below the value of a schedule that is no good, and little above what is proved; labels merged on several devices.

    Up to what other bounds prove, too, so that all may claim.
    """
    proved, known = ceil(certificates(problem, problem.objective)[0].value_ticks), _known(problem)
    for most in (known, proved + 16):
        for one in bounds_of_chains(problem, Event(), proved - 1.0, most, (1, 64)):
            proved = max(proved, int(one.value_ticks))
            yield one
