"""Arguments about the period: the share of a device's time and memory that a micro-batch of each chain takes.

Schedules of ever more micro-batches may run one batch after another, so that one micro-batch of each chain takes no
more of a device's time, or of its memory times time, than the device has in as many periods.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from math import gcd
from typing import NamedTuple

from pipesched.checking.devices.memory_over_time import area
from pipesched.checking.devices.one_device import OneDevice
from pipesched.checking.finding import RefusedEvidenceError
from pipesched.checking.streams.load import stream_load
from pipesched.problem.problem import Problem
from pipesched.problem.quantities import DeviceId, MemorySteps, StageId, Ticks
from pipesched.results.evidence import ModeMultipliers, OnDevice, OnStage, OnStream


def period_load(problem: Problem, evidence: OnDevice) -> Fraction:
    """Argument: a device runs all passes of one micro-batch of each chain, one at a time.

    Returns the bound on the period in ticks per micro-batch: that work divided by the number of chains with
    micro-batches. Raises `RefusedEvidenceError` if there is no such device or no micro-batch passes it.
    """
    unit = _one_of_each_chain(problem)
    return Fraction(OneDevice(unit, evidence.device).work, unit.microbatches)


def period_stream_load(problem: Problem, evidence: OnStream) -> Fraction:
    """Argument: a stream runs all its tasks of one micro-batch of each chain, one at a time.

    Returns the bound on the period in ticks per micro-batch. Raises `RefusedEvidenceError` for a device that does not
    exist, or if passes may run in blocks.
    """
    unit = _one_of_each_chain(problem)
    return Fraction(stream_load(unit, evidence), unit.microbatches)


def period_in_flight(problem: Problem, evidence: OnStage) -> Fraction:
    """Argument: memory admits K micro-batches to a stage, each for its round trip, so at most K start in that time.

    Returns the bound on the period in ticks per micro-batch. Raises `RefusedEvidenceError` for a stage that does not
    exist, that no micro-batch passes, or whose micro-batches memory does not limit.
    """
    if not 0 <= evidence.stage < len(problem.stages):
        raise RefusedEvidenceError(f"there is no stage {evidence.stage}")
    unit = _one_of_each_chain(problem)
    here = OneDevice(unit, problem.placement.stage_device[evidence.stage])
    admitted, cycle = here.rounds(evidence.stage)
    return Fraction(cycle, admitted * unit.microbatches)


def period_memory(problem: Problem, evidence: OnDevice) -> Fraction:
    """Argument: memory times ticks of a micro-batch on each chain, forward to backward, against the device's memory.

    Returns the bound on the period in ticks per micro-batch. Raises `RefusedEvidenceError` if no micro-batch passes the
    device, if its memory has no limit, or if none is left for activations.
    """
    unit = _one_of_each_chain(problem)
    here = OneDevice(unit, evidence.device)
    if not here.room or here.room < 0:
        raise RefusedEvidenceError(f"the memory of device {evidence.device} has no limit")
    return Fraction(sum(area(here, stage) for stage in here.stages), here.room * unit.microbatches)


class _Mode(NamedTuple):
    """A mode of a stage's backward: split, fused, or in a block with the forward of stage `forward` (else None).

    `gradient` is the ticks from its start until its gradient is computed.
    """

    stage: StageId
    split: bool
    forward: StageId | None
    gradient: Ticks  # ticks until the gradient is there


def period_modes(problem: Problem, evidence: ModeMultipliers) -> Fraction:
    """Return the lower bound on the period proved by multipliers of all devices' load and memory over time.

    It is in ticks per micro-batch.

    Forwards count as they are, a backward in its cheapest mode: split, fused, or in a block with a forward. A forward's
    multiplier is added in each mode that uses it in a block, and subtracted once. The sum is divided by the sum of the
    multipliers of load and memory, so only their proportions matter. Raises `RefusedEvidenceError` if a multiplier is
    negative, if devices or stages lack one, or if all multipliers of load and memory are 0.
    """
    unit = _one_of_each_chain(problem)
    lists = evidence.loads, evidence.memory, evidence.blocks
    if [len(one) for one in lists] != [unit.devices, unit.devices, len(unit.stages)] or min(map(min, lists)) < 0:
        raise RefusedEvidenceError("not a multiplier from 0 on for every device and stage")
    share = sum(evidence.loads) + sum(evidence.memory)
    if not share:
        raise RefusedEvidenceError("no multiplier above 0")
    blocks = [one * evidence.tick / problem.tick for one in evidence.blocks]
    walked = [s for s in range(len(unit.stages)) if unit.microbatches_of[s]]
    shares = _memory_shares(unit, evidence.memory)
    total = -sum((blocks[s] for s in walked), Fraction(0))
    for s in walked:
        stage, load = unit.stages[s], evidence.loads[unit.placement.stage_device[s]]
        total += load * stage.forward + shares.waiting[s] * stage.forward + shares.transfers[s]
        total += min(_cost(unit, mode, load, shares, blocks) for mode in _modes(unit, s))
    return total / share / unit.microbatches


class _MemoryShares(NamedTuple):
    """Costs of memory by stage: multipliers of the devices times shares of their memory.

    `waiting` is for a tick in which the activations of the stage and of those before it on its chain are in memory,
    `per_unit` for a tick of one step of its device's memory, `transfers` for all ticks of the transfer to the chain's
    next stage and back. 0 for stages that no micro-batch passes.
    """

    waiting: list[Fraction]
    per_unit: list[Fraction]
    transfers: list[Fraction]


def _memory_shares(unit: Problem, multipliers: tuple[Fraction, ...]) -> _MemoryShares:
    """Return the costs for one micro-batch of each chain; `multipliers` are those of memory over time, by device."""
    count = len(unit.stages)
    waiting, transfers, per_unit = [Fraction(0)] * count, [Fraction(0)] * count, [Fraction(0)] * count
    for chain in unit.placement.chains:
        if not unit.microbatches_of[chain[0]]:
            continue
        so_far = Fraction(0)
        for place, s in enumerate(chain):
            device = unit.placement.stage_device[s]
            room = _room_in_steps(unit, device)
            per_unit[s] = multipliers[device] / room if room else Fraction(0)
            so_far += per_unit[s] * unit.stages[s].activation
            waiting[s] = so_far
            if place + 1 < len(chain):
                transfers[s] = so_far * (unit.lag(s, chain[place + 1]) + unit.lag(chain[place + 1], s))
    return _MemoryShares(waiting, per_unit, transfers)


def _room_in_steps(unit: Problem, device: DeviceId) -> MemorySteps:
    """Return a device's memory, rounded down to a multiple of what divides all its amounts; 0 if it limits nothing."""
    here = [s for s in unit.placement.stages_of[device] if unit.microbatches_of[s]]
    sizes = [unit.stages[s].activation for s in here]
    sizes += [unit.stages[s].freed for s in here if unit.stages[s].weight is not None]
    room = OneDevice(unit, device).room if here else None
    return 0 if room is None or room <= 0 or not any(sizes) else room - room % gcd(*sizes)


def _modes(unit: Problem, s: StageId) -> Iterator[_Mode]:
    """Yield the modes of the backward of stage `s`: split if allowed, fused, and in each block that it may join."""
    stage = unit.stages[s]
    if stage.weight is not None:
        yield _Mode(s, True, None, stage.backward)
    yield _Mode(s, False, None, stage.fused)
    for mate in unit.placement.stages_of[unit.placement.stage_device[s]]:
        block = unit.stages[mate].block_with(stage)
        if unit.microbatches_of[mate] and block is not None:
            yield _Mode(s, False, mate, block)


def _cost(unit: Problem, mode: _Mode, load: Fraction, shares: _MemoryShares, blocks: list[Fraction]) -> Fraction:
    """Return the cost of a mode, in weighted ticks.

    It is the load, and the memory in use while the mode runs, for all stages that wait for its gradient. `load` is the
    multiplier of a tick of the stage's device, `blocks[s]` that of the rule that a forward of stage s is in at most one
    block, in weighted ticks.
    """
    stage = unit.stages[mode.stage]
    cost = (load + shares.waiting[mode.stage]) * mode.gradient
    if mode.forward is not None:
        alone = unit.stages[mode.forward].forward
        cost += blocks[mode.forward] - load * alone + shares.waiting[mode.forward] * (mode.gradient - alone)
    if mode.split:
        assert stage.weight is not None
        memory_time = max(0, -stage.freed) * stage.backward + (stage.activation - stage.freed) * stage.weight
        cost += load * stage.weight + shares.per_unit[mode.stage] * memory_time
    return cost


def _one_of_each_chain(problem: Problem) -> Problem:
    walked = [chain for chain in problem.placement.chains if problem.microbatches_of[chain[0]]]
    return replace(problem, microbatches=len(walked))
