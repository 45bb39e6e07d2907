"""Arrays of a problem for a beam search over forwards, gradients and their blocks."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pipesched.int64_arrays import int64_array, int64_sum
from pipesched.problem.passes import F, W
from pipesched.problem.problem import Problem
from pipesched.problem.quantities import ChainId, DeviceId, MemoryArray, MemorySteps, StageId, TickArray, Ticks
from solver.diagram.steps import StepId

Numbers = NDArray[np.int64]

# The room of a device whose memory has no limit.
ENDLESS = 2**60


class StepTables(NamedTuple):
    """Arrays by step: the forwards of a chain and then its gradients, one chain after the other; times in ticks.

    `device` runs the step in `ticks`, `lag` after the end of the step before it on the chain, `before` (-1: none);
    `last` is the last step of the chain, whose number is `chain`. `first` is the index of the chain's first micro-batch
    among all, `microbatches` their number. `weight` is the time of a gradient's weight pass (0: none), -1 for a
    forward. A forward takes `takes`; a gradient releases `gives`, its weight pass `later`. `tail` is the path from a
    step's start to the end of the last one, `reach` that to the next step on each device (-1: none). `block` is the
    time of a forward and a full backward together, -1 if they form no block.

    By device, `room` is the memory, `saved` the mean saving of a block, and `waits[since[device] : since[device + 1]]`
    are its gradients, those with the longest weight passes first. No pass runs on it before it `opens`, from which on
    its time counts, so `tail` excludes the opening time of the last step's device. `safe` is, by chain and device, the
    step that a micro-batch has to take until it needs no more memory that others could occupy for ever. `occupied` is,
    by step and device, the memory that a micro-batch occupies there while this step is its next one, and `area` the
    memory times ticks that it will still occupy there on its shortest path to the end. 64-bit integers may not
    represent these two: they only rank orders, so rounded ones suffice.
    """

    device: Numbers
    ticks: TickArray
    lag: TickArray
    before: Numbers
    last: Numbers
    first: Numbers
    microbatches: Numbers
    weight: TickArray
    takes: MemoryArray
    gives: MemoryArray
    later: MemoryArray
    tail: TickArray
    reach: TickArray
    block: TickArray
    room: MemoryArray
    opens: TickArray
    saved: TickArray
    waits: Numbers
    since: Numbers
    chain: Numbers
    safe: Numbers
    occupied: NDArray[np.float64]
    area: NDArray[np.float64]


class Step(NamedTuple):
    """A step of a chain (by number): its stage, and True if it is a gradient pass (B or BW), False if a forward."""

    chain: ChainId
    stage: StageId
    gradient: bool


def covers(problem: Problem) -> bool:
    """True if the problem is plain, no B takes more memory than it frees, and no two stages share a queue.

    Stages of one queue run their passes in the order of micro-batches, so that chains would wait for each other's turn.
    """
    view = problem.view
    if view is None or len(set(problem.walks.queues)) < len(problem.walks.queues):
        return False
    return all(view.freed_by_backward(stage) >= 0 for stage in view.stages)


def steps_of_chains(problem: Problem) -> list[Step]:
    """Return the steps of all chains with micro-batches, in the order of the arrays of `StepTables`."""
    found = []
    for number, chain in enumerate(problem.placement.chains):
        if len(problem.microbatches_of[chain[0]]):
            found += [Step(number, stage, False) for stage in chain]
            found += [Step(number, stage, True) for stage in reversed(chain)]
    return found


def tables_of(problem: Problem, opens: Sequence[Ticks] | None = None) -> StepTables:
    """Return the arrays of a problem for which `covers` is true.

    `opens` are the opening times of devices in ticks, else 0. Raises `OutOfRange` if times or memory, or their sums
    over micro-batches, are too large for compiled code.
    """
    view, opens = problem.pipeline, opens or [0] * problem.devices
    steps, where = steps_of_chains(problem), problem.placement.stage_device
    count, grads = len(steps), [step.gradient for step in steps]
    device = [where[step.stage] for step in steps]
    ticks = [view.ticks[problem.network.gradient if step.gradient else F, step.stage] for step in steps]
    lag = [0] * count
    before, last = [-1] * count, list(range(count))
    for at, (one, step) in enumerate(pairwise(steps), 1):
        if one.chain == step.chain:
            before[at] = at - 1
            lag[at] = 0 if one.stage == step.stage else problem.lag(one.stage, step.stage)
    for at in reversed(range(count - 1)):
        if before[at + 1] == at:
            last[at] = last[at + 1]
    tails, reach = _paths(ticks, lag, device, last, problem.devices)
    microbatches = [len(problem.microbatches_of[step.stage]) for step in steps]
    weight = [view.ticks.get((W, step.stage), 0) if step.gradient else -1 for step in steps]
    memory = [view.memory_in_flight[step.stage] for step in steps]
    whole = [amount if grad else 0 for amount, grad in zip(memory, grads, strict=True)]
    gives = [
        view.freed_by_backward(step.stage) if later > 0 else all_
        for all_, step, later in zip(whole, steps, weight, strict=True)
    ]
    later = [all_ - now for all_, now in zip(whole, gives, strict=True)]
    block = _blocks(problem, steps)
    order = sorted((at for at in range(count) if grads[at]), key=lambda at: (device[at], -weight[at]))
    since = np.searchsorted([device[at] for at in order], range(problem.devices + 1))
    columns = (
        *(device, ticks, lag, before, last, _firsts(steps, microbatches), microbatches, weight),
        *([0 if grad else amount for amount, grad in zip(memory, grads, strict=True)], gives),
        *(later, [tail - opens[device[end]] for tail, end in zip(tails, last, strict=True)], reach, block),
        *([ENDLESS if room is None else room for room in problem.room], opens),
        *(
            _saved(ticks, weight, device, block, problem.devices),
            order,
            since,
            [step.chain for step in steps],
            _safe(problem, steps, device),
        ),
    )
    int64_sum([own * (one + max(0, more)) for own, one, more in zip(microbatches, ticks, weight, strict=True)])
    int64_sum([own * amount for own, amount in zip(microbatches, whole, strict=True)])
    whole_numbers = [int64_array(column) for column in columns]
    return StepTables._make([*whole_numbers, *_holding(steps, device, [gives, later], [ticks, weight], tails)])


def _paths(
    ticks: Sequence[Ticks], lag: Sequence[Ticks], device: Sequence[DeviceId], last: Sequence[StepId], devices: int
) -> tuple[list[Ticks], TickArray]:
    """Return the ticks from the start of each step to the end of its chain, and to the next step on each device.

    The second is an array by step and device, 0 for the step's own device, -1 where no later step is on it. `lag` has
    the ticks between the step before and the step, `last` the last step of its chain.
    """
    tails, reach = list(ticks), np.full((len(ticks), devices), -1, np.int64)
    for at in reversed(range(len(ticks))):
        if last[at] != at:
            tails[at] += lag[at + 1] + tails[at + 1]
            known = reach[at + 1] >= 0
            reach[at, known] = reach[at + 1, known] + ticks[at] + lag[at + 1]
        reach[at, device[at]] = 0
    return tails, reach


def _holding(
    steps: Sequence[Step],
    device: Sequence[DeviceId],
    given_back: Sequence[Sequence[MemorySteps]],
    ticks: Sequence[Sequence[Ticks]],
    tails: Sequence[Ticks],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the memory that a micro-batch occupies on a device while a step is its next, and what it will still take.

    Both are arrays by step and device (`occupied` and `area` of `StepTables`); the second is in memory times ticks, on
    the shortest path to the end. `device` and `tails`, the ticks from a step's start to the end of its chain, are by
    step. `given_back` has by step the memory that a gradient frees, then that of its weight pass; `ticks` their
    durations.
    """
    shape = len(steps), max(device) + 1
    occupied, area = np.zeros(shape), np.zeros(shape)
    for forward, step in enumerate(steps):
        if step.gradient:
            continue
        gradient, after = steps.index(step._replace(gradient=True)), 0
        for amounts, passes in zip(given_back, ticks, strict=True):
            after += passes[gradient]
            for at, other in enumerate(steps):
                if other.chain == step.chain and at <= gradient:
                    taken = max(at, forward)  # the memory is in use from this step on
                    occupied[at, device[forward]] += amounts[gradient] * (at > forward)
                    area[at, device[forward]] += amounts[gradient] * (tails[taken] - tails[gradient] + after)
    return occupied, area


def _firsts(steps: Sequence[Step], microbatches: Sequence[int]) -> list[int]:
    """Return by step the index of the first micro-batch of the step's chain.

    It counts the micro-batches of all chains one after the other. `microbatches` has by step the number of
    micro-batches of its chain.
    """
    of_chain = dict(zip((step.chain for step in steps), microbatches, strict=True))
    return [sum(count for chain, count in of_chain.items() if chain < step.chain) for step in steps]


def _blocks(problem: Problem, steps: Sequence[Step]) -> TickArray:
    where, found = problem.placement.stage_device, np.full((len(steps), len(steps)), -1, np.int64)
    for one, forward in enumerate(steps):
        for other, backward in enumerate(steps):
            if not forward.gradient and backward.gradient and where[forward.stage] == where[backward.stage]:
                found[one, other] = problem.pipeline.blocks.get((forward.stage, backward.stage), -1)
    return found


def _saved(
    ticks: Sequence[Ticks], weight: Sequence[Ticks], device: Sequence[DeviceId], block: TickArray, devices: int
) -> list[Ticks]:
    """Return for each device the mean ticks that its blocks save against their two passes in turn; 0 without blocks.

    The arguments before `devices`, their number, are by step, as in `StepTables`.
    """
    found, steps = [], range(len(ticks))
    for one in range(devices):
        saved = [
            ticks[f] + ticks[b] + weight[b] - int(block[f, b])
            for f in steps
            for b in steps
            if block[f, b] >= 0 and device[f] == one
        ]
        found.append(max(0, sum(saved) // len(saved)) if saved else 0)
    return found


def _safe(problem: Problem, steps: Sequence[Step], device: Sequence[DeviceId]) -> Numbers:
    """Return by chain and device the step after which a micro-batch needs no memory that others could hold for ever.

    With a single chain it is the chain's last forward on the device; with several, its last forward on any device, as
    they may wait for each other elsewhere. -1 where a chain does not visit the device.
    """
    chains = sorted({step.chain for step in steps})
    found = np.full((len(problem.placement.chains), problem.devices), -1, np.int64)
    for at, step in enumerate(steps):
        if not step.gradient:
            found[step.chain, device[at]] = at
    if len(chains) > 1:
        for chain in chains:
            found[chain, found[chain] >= 0] = found[chain].max()
    return found
