"""Threshold bounds on growing sets of devices; the diagram of each single device prunes orders that end too late.

All chains on the devices are modelled, with the memory and the blocks that they share there. Single devices are first,
then sets of those with the best bounds. So few labels remain that sets of six and more devices are affordable.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from pipesched.problem.problem import Problem
from pipesched.problem.quantities import DeviceId, StageId, Ticks
from pipesched.results.certificate import Certificate
from solver.diagram.modelled_stages import stages_on, walked_chains
from solver.diagram.projected_completion import SmallerDiagram
from solver.diagram.steps import ModelledSteps
from solver.diagram.threshold_search import ThresholdSearch

# Completion rows of one device that are kept per state.
_ROWS = 64
# Labels within which a set is tried at the best schedule's value: so many, or times as many as for sets before it.
_AT_ONCE, _TIMES_AS_MANY = 200_000, 4


class _Single(NamedTuple):
    """A device, the completion bounds `by` of the diagram with all its stages, and the bound proved by it in ticks."""

    device: DeviceId
    by: SmallerDiagram
    proved: Ticks


def bounds_by_device(search: ThresholdSearch) -> Iterator[Certificate]:
    """Yield certificates of increasing value, all above the bound proved so far and at most the best schedule's value.

    Labels looked at are taken off `search.work`, integers stored off `search.numbers`. Nothing is yielded for the
    period objective, nor unless the problem is plain.
    """
    problem = search.problem
    chains = [*walked_chains(problem)]
    if problem.objective.repeats or problem.view is None:
        return
    span, singles, seen = problem.objective.by_device, list[_Single](), dict[object, int]()
    for device in range(problem.devices):
        by = None if search.over else search.smaller_diagram(_on(problem, chains, (device,)), device if span else None)
        if by is None:
            continue
        key = _identity(by.kept)
        if key not in seen:
            yield from search.certificates(by.kept, [by], search.step(), 1)
            seen[key] = search.ended
        singles.append(_Single(device, by, seen[key]))
        search.numbers -= sum(layer.rows.size for layer in by.layers)  # which all stay
    singles.sort(key=lambda one: -one.proved)
    step, shortest, given = search.step(), search.shortest(), search.work
    for count in range(2, len(singles) + 1):
        together = [one.device for one in singles[:count]]
        kept = None if search.over else search.kept(_on(problem, chains, together), together[0] if span else None)
        if kept is None:
            return
        # For a span the completion is known only for the device whose span counts.
        smaller = [one.by for one in singles[: 1 if span else count]]
        at_once = max(_AT_ONCE, _TIMES_AS_MANY * (given - search.work))
        yield from search.certificates(kept, smaller, step, shortest, _ROWS, at_once)


def _on(problem: Problem, chains: Sequence[tuple[StageId, ...]], devices: Sequence[DeviceId]) -> tuple[StageId, ...]:
    """Return the stages that some devices run, chain by chain in chain order."""
    return tuple(stage for chain in chains for stage in stages_on(problem, chain, devices))


def _identity(kept: ModelledSteps) -> object:
    """Return a hashable key that is equal for devices whose diagrams give equal bounds, such as mirror images.

    The order of chains does not matter.
    """
    steps = kept.steps
    holder = steps.holder - np.arange(len(steps.holder))
    columns = (steps.device, steps.ticks, steps.later, steps.lag, steps.takes, steps.microbatches, steps.tail, holder)
    rows = list(zip(*(column.tolist() for column in (*columns, steps.blocks.max(axis=1))), strict=True))
    chains = sorted(tuple(rows[n] for n in np.flatnonzero(steps.last == last)) for last in set(steps.last.tolist()))
    return tuple(chains), tuple(steps.room.tolist()), tuple(steps.waiting.tolist())
