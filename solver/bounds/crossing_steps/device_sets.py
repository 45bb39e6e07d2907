"""Which devices of a chain are kept, and how many labels of a state: the cheapest to try first."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from pipesched.problem.problem import Problem
from solver.bounds.crossing_steps.steps import state_count

# States of a layer beyond which devices are too many.
_MOST_STATES = 1_000_000


class Trial(NamedTuple):
    """A chain, some of its devices, that of its first stage first, and how many labels of a state are kept distinct."""

    chain: tuple[int, ...]
    devices: tuple[int, ...]
    width: int


def trials(problem: Problem, chains: Iterable[tuple[int, ...]], widths: Sequence[int]) -> list[Trial]:
    """By about how much work they are."""
    found = []
    for chain in chains:
        for devices in dict.fromkeys(_device_sets(problem, chain)):
            states = state_count(problem, chain, devices)
            if states <= _MOST_STATES:
                # Few states have few labels.
                found += [(states * width * len(devices), Trial(chain, devices, width)) for width in widths]
    return [trial for _, trial in sorted(found)]


def _device_sets(problem: Problem, chain: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """The first device; with it the one with most work, the one in the middle, the second one; both; some more; all."""
    where = problem.placement.stage_device
    devices = list(dict.fromkeys(where[stage] for stage in chain))
    first, others = devices[0], devices[1:]
    yield (first,)
    if not others:
        return
    work = {device: sum(problem.least_work(s) for s in chain if where[s] == device) for device in others}
    busiest, middle, second = max(others, key=lambda device: work[device]), devices[len(devices) // 2], others[0]
    for more in ([busiest], [middle], [second], [middle, busiest], devices[2::2], [*devices[2::2], busiest], others):
        yield (first, *(device for device in others if device in more))
