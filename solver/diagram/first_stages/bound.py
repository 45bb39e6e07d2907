"""The bound by crossings: the least time of some stages over all orders in which micro-batches pass each other.

Micro-batches of a chain are alike, so that on every stage they run in turn, forwards and gradients. What is left of an
order is, for each gradient, how many forwards run before it on each stage. A round decides that for one gradient: a
dynamic program over rounds, whose state is how many forwards have run, and whose labels are times. Of many labels near
ones are merged, each time the earlier one: a relaxed decision diagram, whose least value is below every schedule's.
"""

from __future__ import annotations

from collections.abc import Iterator
from threading import Event

import numpy as np

from pipesched.problem.formatting import amount, counted
from pipesched.problem.problem import Problem
from pipesched.results.certificate import Certificate
from pipesched.results.crossing_evidence import Crossings
from solver.bounds.analytic.critical_paths import Paths
from solver.diagram.first_stages.growth import skip
from solver.diagram.first_stages.line import Line, Numbers, candidates, line_of
from solver.diagram.first_stages.states import count, states, steps
from solver.diagram.repetition import ROUNDS
from solver.tuning import MOST_LABELS, WIDTHS

# The name of its certificates.
KIND = "crossings"
# States and steps beyond which a line is too long.
_MOST_STATES, _MOST_STEPS = 3_000, 100_000


def crossing_bounds(
    problem: Problem, stop: Event, width: int = WIDTHS[1], work: int = MOST_LABELS
) -> Iterator[Certificate]:
    """For the first two stages of each chain, the first three and so on, while that takes no more than so much work.

    Nothing where blocks overlap a forward and a backward, which then need not pass each other.
    """
    if problem.overlaps:
        return
    for line in lines(problem, Paths(problem)):
        value, work = least_value(line, width, work, stop)
        if value is not None:
            yield _certificate(problem, line, width, value)


def lines(problem: Problem, paths: Paths) -> Iterator[Line]:
    """Of each chain that memory admits few micro-batches to: its first two stages, its first three and so on."""
    for chain in problem.placement.chains:
        reached = candidates(problem, chain) if problem.microbatches_of[chain[0]] else []
        for many in range(2, len(reached) + 1):
            line = line_of(problem, paths, reached[:many])
            if line is not None:
                yield line


def least_value(line: Line, width: int, work: int, stop: Event) -> tuple[int | None, int]:
    """The least ticks from the first forward of the line to the end of what it counts, and the work that is left.

    None where that would take more.
    """
    from solver.diagram.first_stages.rounds import LONG_AGO, one_round

    if count(line) > _MOST_STATES:
        return None, work
    rows = states(line)
    since, until = steps(rows)
    if len(since) > _MOST_STEPS:
        return None, work
    many = len(line.stages)
    labels = np.zeros((len(rows), width, 2 * many + line.admitted[0]), np.int64)
    labels[:, :, 2 * many :] = LONG_AGO
    counts = np.zeros(len(rows), np.int64)
    counts[0] = 1
    left, before = line.microbatches, list[tuple[Numbers, Numbers]]()
    while left and work > 0 and not stop.is_set():
        after, kept = np.empty_like(labels), np.zeros_like(counts)
        work -= one_round(labels, counts, rows, since, until, left, line.ticks, line.turn, line.pending, after, kept)
        labels, counts, left = after, kept, left - 1
        before.append((labels, counts))
        if len(before) == ROUNDS and left > line.admitted[0]:
            left -= skip(before, left - line.admitted[0])
    return (None if left else _end(line, labels[0, : counts[0]])), work


def _end(line: Line, labels: Numbers) -> int:
    """When all passes of the first device have run at the earliest; for the makespan those of every device."""
    many = len(line.stages)
    ends = labels[:, many : 2 * many] if line.makespan else labels[:, many : many + 1]
    return int(ends.max(axis=1).min())


def _certificate(problem: Problem, line: Line, width: int, value: int) -> Certificate:
    device = problem.placement.stage_device[line.stages[0]]
    text = (
        f"The memory of device {device} admits {counted(line.admitted[0], 'micro-batch')} to stage {line.stages[0]} at "
        f"once. On stages {', '.join(map(str, line.stages))} each gradient on its way up passes the forwards of those "
        f"behind it on their way down, without a wait only where both are at neighbouring stages at the right time. In "
        f"whichever order they pass each other, all {line.microbatches} take at least {amount(problem, value)}."
    )
    return Certificate(KIND, value, text, device, Crossings(line.stages, width))
