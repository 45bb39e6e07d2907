"""Sets of a chain's devices to model in decision diagrams, cheapest first."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from pipesched.problem.problem import Problem
from pipesched.problem.quantities import DeviceId, StageId
from solver.diagram.modelled_stages import devices_of, stages_on, state_count
from solver.diagram.params import DIAGRAMS


class Trial(NamedTuple):
    """A chain, and its stages on a set of devices, both in chain order."""

    chain: tuple[StageId, ...]
    stages: tuple[StageId, ...]


def trials(problem: Problem, chains: Iterable[tuple[StageId, ...]]) -> list[Trial]:
    """Return the sets of modelled stages that are few enough to be tried, in ascending order of estimated work.

    Each is of one of `chains` (the stages of a chain in order). With overlapped passes a chain's first device and the
    one that it reaches last are tried first, unless they have many states: where a chain returns to its devices, it
    turns at that one, and micro-batches waiting there add to the remaining time.
    """
    found, ends = list[tuple[int, Trial]](), list[Trial]()
    for chain in chains:
        devices = devices_of(problem, chain)
        for some in dict.fromkeys((*_rows(problem, chain), *_device_sets(problem, chain))):
            stages = stages_on(problem, chain, some)
            states = state_count(problem, stages)
            if states <= DIAGRAMS.most_states:
                found.append((states * len(some), Trial(chain, stages)))
        stages = stages_on(problem, chain, (devices[0], devices[-1]))
        if problem.network.blocks and len(devices) > 1 and state_count(problem, stages) <= DIAGRAMS.quick:
            ends.append(Trial(chain, stages))
    return [*ends, *(trial for _, trial in sorted(found) if trial not in ends)]


def in_even_steps(problem: Problem, chain: Sequence[StageId], most: int) -> Iterator[tuple[StageId, ...]]:
    """Yield the stages on the first device of a chain and on 1 to `most` others.

    These are at even intervals up to the last device. The largest set is first; nothing is yielded for a chain on one
    device.
    """
    first, *others = devices_of(problem, chain)
    for count in range(min(len(others), most), 0, -1):
        some = [others[len(others) * n // count - 1] for n in range(1, count + 1)]
        yield stages_on(problem, chain, (first, *some))


def _device_sets(problem: Problem, chain: Sequence[StageId]) -> Iterator[tuple[DeviceId, ...]]:
    """Yield sets of a chain's devices that contain its first one.

    The first alone, then with the busiest, the middle, or the second device, with pairs, with every other device, and
    with all.
    """
    where = problem.placement.stage_device
    devices = list(devices_of(problem, chain))
    first, others = devices[0], devices[1:]
    yield (first,)
    if not others:
        return
    work = {device: sum(problem.least_work(s) for s in chain if where[s] == device) for device in others}
    busiest, middle, second = max(others, key=lambda device: work[device]), devices[len(devices) // 2], others[0]
    for more in ([busiest], [middle], [second], [middle, busiest], devices[2::2], [*devices[2::2], busiest], others):
        yield (first, *(device for device in others if device in more))


def _rows(problem: Problem, chain: Sequence[StageId]) -> Iterator[tuple[DeviceId, ...]]:
    """Yield the first three, four, ... devices, but not all, of a chain that visits no device twice; else nothing.

    Between neighbours forwards and gradients wait for each other, so these sets prove more than devices far apart.
    """
    devices = devices_of(problem, chain)
    if len(devices) == len(chain):
        yield from (devices[:many] for many in range(3, len(devices)))
