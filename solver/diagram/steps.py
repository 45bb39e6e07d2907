"""What a problem is relaxed to: the forwards and gradients of some stages of a chain, in turn, as steps.

Micro-batches of a chain are alike. If their names are exchanged on each stage by the order in which they run there,
what they wait for is still before them: the k-th forward of a stage ends before the k-th one of the next stage starts,
and so the gradients. So on every stage they run in turn, and an order of steps says how many each micro-batch has
done, which leaves the memory of a device at every step as it was. If a stage that is left out is thought of as on a
device of its own, whose memory has no limit, every schedule stays one: such stages are delays.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import comb
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pipesched.problem.passes import BW, F, Pass
from pipesched.problem.problem import Objective, Problem
from solver.bounds.analytic.critical_paths import Paths, durations

Numbers = NDArray[np.int64]

# For the gradient of a move without one, and what there is not.
NONE = -1
# Sums of times of many labels must stay below what 64 bits hold, and so must the keys of states.
_MOST_TICKS, _MOST_KEYS = 2**36, 2**62


class Steps(NamedTuple):
    """The way of a micro-batch along the kept stages and back.

    By step: the number of its `device`, its `ticks` outside of `blocks`, what a backward takes after its gradient
    then (`later`), the `lag` from the end of the step before, and the memory it `takes`, negative where it gives
    back. `reach[n, d]` is the least time from the end of step n - 1 to a step on device d, -1 where none follows;
    `blocks[n, g]` are the ticks of a forward and a gradient of a device in one block, or -1. By device: its `room`,
    -1 without limit; the least memory of a `waiting` weight pass, the `longest` one, the memory of a `whole`
    micro-batch and the last `forward` step. `in_flight` micro-batches at most are between their first and their
    last step; `place[n]` is the weight of how many of them have done step n in the key of a state.
    """

    device: Numbers
    ticks: Numbers
    later: Numbers
    lag: Numbers
    takes: Numbers
    reach: Numbers
    blocks: Numbers
    room: Numbers
    waiting: Numbers
    longest: Numbers
    whole: Numbers
    forward: Numbers
    place: Numbers
    microbatches: int
    in_flight: int
    makespan: bool


class Kept(NamedTuple):
    """The kept stages of a chain, their steps, when a micro-batch alone `ends` each, and what passes `beside` them.

    Where the chain's first stage is not kept, device 0 of the steps has none, and what counts is the start of the last
    gradient, as nothing on that device starts before the last step did; `beside` is what passes before the first step
    and from that start on. Else what counts is the end of the work of device 0, or for the makespan of all of them.
    """

    chain: tuple[int, ...]
    stages: tuple[int, ...]
    steps: Steps
    ends: Numbers
    beside: int


def walked_chains(problem: Problem) -> Iterator[tuple[int, ...]]:
    """The chains that micro-batches walk."""
    for chain, walk in zip(problem.placement.chains, problem.walking, strict=True):
        if len(walk):
            yield chain


def devices_of(problem: Problem, stages: Sequence[int]) -> tuple[int, ...]:
    """Their devices, in the order of the stages."""
    return tuple(dict.fromkeys(problem.placement.stage_device[stage] for stage in stages))


def stages_on(problem: Problem, chain: Sequence[int], devices: Sequence[int]) -> tuple[int, ...]:
    """The stages of a chain on some devices."""
    return tuple(stage for stage in chain if problem.placement.stage_device[stage] in devices)


def in_flight(problem: Problem, stages: Sequence[int]) -> int:
    """How many micro-batches memory admits to the first stage between forward and gradient."""
    room, taken = problem.room[problem.placement.stage_device[stages[0]]], problem.stages[stages[0]].activation
    count = len(problem.microbatches_of[stages[0]])
    return count if room is None or taken <= 0 else min(count, room // taken)


def state_count(problem: Problem, stages: Sequence[int]) -> int:
    """About how many states a layer has, at most."""
    return ways_to_place(in_flight(problem, stages), 2 * len(stages))


def ways_to_place(microbatches: int, steps: int) -> int:
    """About how many ways there are to place micro-batches on the steps, in turn, with so many steps done in all."""
    return comb(steps + microbatches, steps) // steps


def kept_stages(problem: Problem, paths: Paths, chain: Sequence[int], stages: Sequence[int]) -> Kept | None:
    """The steps of stages in the order of their chain; None where numbers are too large, or nothing is admitted."""
    first, count, most = stages[0], len(problem.microbatches_of[stages[0]]), in_flight(problem, stages)
    from_first, down = first == chain[0], len(stages)
    own: tuple[int | None, ...] = devices_of(problem, stages)
    devices = own if from_first else (None, *own)
    of = [[stage for stage in stages if problem.placement.stage_device[stage] == one] for one in devices]
    device = np.array([devices.index(problem.placement.stage_device[s]) for s in (*stages, *stages[::-1])], np.int64)
    starts, ends = _on_the_way(paths, stages)
    ticks, later = _outside_of_blocks(problem, stages)
    before = np.append(0, ends[:-1])
    blocks = _blocks(problem, stages)
    longest = int(starts[-1] + ticks.sum() + later.sum())
    if count * longest > _MOST_TICKS or most < 1 or (most + 1) ** (2 * down - 1) > _MOST_KEYS:
        return None
    takes = np.array([problem.stages[stage].activation for stage in stages], np.int64)
    rooms = [None if one is None else problem.room[one] for one in devices]
    steps = Steps(
        device=device,
        ticks=ticks,
        later=later,
        lag=starts - before,
        takes=np.concatenate((takes, -takes[::-1])),
        reach=_reach(device, starts, before, len(devices)),
        blocks=blocks,
        room=np.array([NONE if room is None else room for room in rooms], np.int64),
        waiting=np.array([max(0, min((_waiting(problem, s) for s in own), default=0)) for own in of], np.int64),
        longest=np.array([later[device == n].max(initial=0) for n in range(len(devices))], np.int64),
        whole=np.bincount(device[:down], takes, len(devices)).astype(np.int64),
        forward=np.array([max(np.flatnonzero(device[:down] == n), default=0) for n in range(len(devices))], np.int64),
        place=np.array([0, *((most + 1) ** n for n in range(2 * down - 1))], np.int64),
        microbatches=count,
        in_flight=most,
        makespan=from_first and problem.objective is Objective.MAKESPAN,
    )
    beside = 0 if from_first else paths.head[first] + paths.gradient[first] + paths.tail(first)
    return Kept(tuple(chain), tuple(stages), steps, ends, beside)


def longest_of_all(problem: Problem) -> int:
    """No fewer ticks than all kept passes of a chain take one after the other, whichever stages are kept."""
    paths, found = Paths(problem), 0
    for chain in walked_chains(problem):
        once = paths.forward[chain[0]] + paths.round_trip[chain[0]] + paths.gradient[chain[0]]
        alone = sum(int(times.sum()) for times in _outside_of_blocks(problem, chain))
        blocks = int(_blocks(problem, chain).max(axis=1).clip(min=0).sum()) if problem.overlaps else 0
        found = max(found, len(problem.microbatches_of[chain[0]]) * (once + alone + blocks))
    return found


def without_blocks(steps: Steps) -> Steps:
    """The same, where no block is formed."""
    return steps._replace(blocks=np.full_like(steps.blocks, NONE))


def _on_the_way(paths: Paths, stages: Sequence[int]) -> tuple[Numbers, Numbers]:
    """When a micro-batch starts and ends each step at the earliest, from the start of its first one."""
    back = [*stages[::-1]]
    starts = [paths.head[s] for s in stages] + [paths.head[s] + paths.forward[s] + paths.round_trip[s] for s in back]
    ticks = [paths.forward[s] for s in stages] + [paths.gradient[s] for s in back]
    since = np.array(starts, np.int64) - starts[0]
    return since, since + np.array(ticks, np.int64)


def _outside_of_blocks(problem: Problem, stages: Sequence[int]) -> tuple[Numbers, Numbers]:
    """Of each step its ticks, and what a backward takes later; in a block with a stage that is not kept maybe less."""
    placement = problem.placement
    of = [placement.stages_of[placement.stage_device[stage]] for stage in stages]
    own = [durations(problem, s, [n for n in on if n not in stages]) for s, on in zip(stages, of, strict=True)]
    ticks = [forward for forward, _, _ in own] + [gradient for _, gradient, _ in own[::-1]]
    later = [0] * len(own) + [rest - gradient for _, gradient, rest in own[::-1]]
    return np.array(ticks, np.int64), np.array(later, np.int64)


def _blocks(problem: Problem, stages: Sequence[int]) -> Numbers:
    """By the step of a forward and that of a gradient, the ticks of their block; -1 where there is none."""
    where, found = problem.placement.stage_device, np.full((2 * len(stages), 2 * len(stages)), NONE, np.int64)
    for one, forward in enumerate(stages):
        for other, backward in enumerate(reversed(stages), len(stages)):
            if where[forward] == where[backward]:
                ticks = problem.overlapped_ticks(Pass(F, forward, 0), Pass(BW, backward, 0))
                found[one, other] = NONE if ticks is None else ticks
    return found


def _waiting(problem: Problem, stage: int) -> int:
    """What a weight pass that has not run holds."""
    own = problem.stages[stage]
    return own.activation - own.freed if problem.splittable else own.activation


def _reach(device: Numbers, starts: Numbers, before: Numbers, devices: int) -> Numbers:
    """From the end of the step before each to the next one of each device, itself among them; -1 where none is left."""
    found = np.full((len(device), devices), NONE, np.int64)
    for one in range(devices):
        own = np.flatnonzero(device == one)
        number = np.searchsorted(own, np.arange(len(device)))
        some = number < len(own)
        found[some, one] = starts[own[number[some]]] - before[some]
    return found
