"""Argument: the path to a device, its busy interval and the path back lie in the span of a device passed before."""

from __future__ import annotations

from fractions import Fraction

from pipesched.checking.devices.least_times import least_backward
from pipesched.checking.devices.memory_over_time import before_last_forward, before_last_gradient
from pipesched.checking.devices.one_device import OneDevice, most_in
from pipesched.checking.finding import RefusedEvidenceError
from pipesched.problem.problem import Problem
from pipesched.problem.quantities import DeviceId, StageId, Ticks
from pipesched.results.evidence import AroundDevice


def head_and_tail(problem: Problem, evidence: AroundDevice) -> Fraction:
    """Return the lower bound, in ticks: path to the device, its work until its last gradient or forward, path back.

    Raises `RefusedEvidenceError` if the evidence does not fit the problem.
    """
    here = OneDevice(problem, evidence.device)
    gates = {chain[0]: gate for chain, gate in zip(here.chains, gates_of(problem, evidence.owner, here), strict=True)}
    head = min(here.times[chain[0]].begins - here.times[gates[chain[0]]].begins for chain in here.firsts)
    tails = [(chain, return_path(here, chain[0], gates[chain[0]])) for chain in here.lasts]
    if not evidence.to_last_forward:
        return head + _to_last_gradient(here) + min(tail for _, tail in tails)
    # Any of these chains' forwards may be the last.
    return head + min(_to_last_forward(here, chain) + tail for chain, tail in tails)


def gates_of(problem: Problem, owner: DeviceId | None, here: OneDevice) -> list[StageId]:
    """Return for each chain of the device its gate: its first stage on device `owner`, whose span is bounded.

    The gate begins before the device does, and ends after it. For the makespan (`owner` None) it is the chain's first
    stage: time starts before that stage, and ends after it. `RefusedEvidenceError` if there is no gate, or the
    objective does not fit `owner`.
    """
    if (owner is None) != (problem.objective.from_zero):
        raise RefusedEvidenceError(f"a {problem.objective} is not measured so: owner {owner}")
    gates, device_of = [], problem.placement.stage_device
    for stages in here.chains:
        chain = next(chain for chain in problem.placement.chains if stages[0] in chain)
        walked = chain[: chain.index(stages[0]) + 1]
        gate = next((s for s in walked if owner is None or device_of[s] == owner), None)
        if gate is None:
            raise RefusedEvidenceError(f"a chain reaches device {here.device} before device {owner}")
        gates.append(gate)
    return gates


def return_path(here: OneDevice, stage: StageId, gate: StageId) -> Ticks:
    """Return the least ticks from the end of a stage's gradient to the end of its micro-batch's backward on `gate`.

    0 if `stage` is `gate`.
    """
    if stage == gate:
        return 0
    return here.times[gate].gradient_begins + here.times[gate].backward - here.times[stage].returned


def _to_last_gradient(here: OneDevice) -> Fraction:
    """Return the least ticks from the device's first start to its last gradient.

    All work counts, except weight passes that fit into memory together, and the idle time before the first backward.
    """
    put_off = most_in(here.room, here.weight_passes())
    done = max(0, here.work - put_off)
    if not here.blocks:
        done = max(done, sum((here.times[s].forward + here.times[s].gradient) * here.count[s] for s in here.stages))
    by_work = done + here.idle_at_first(here.backward_before_last_forward) + here.idle_between(1)
    return max(Fraction(by_work), before_last_gradient(here))


def _to_last_forward(here: OneDevice, last: list[StageId]) -> Fraction:
    """Return the least ticks from the device's first start, by its last forward, to that micro-batch's gradient.

    `last` are the device's stages on the chain of that forward. All work counts, except backwards pending when the last
    forward ends; the gradient's path and its pass follow.
    """
    idle = here.idle_at_first(some_forward_later=True) if here.backward_before_last_forward else 0
    waits = here.left_of_others(last) + sum(least_backward(here.problem.stages[s]) for s in last)
    back = here.times[last[0]].returned - here.times[last[-1]].begins - here.times[last[-1]].forward
    return max(Fraction(here.work - waits + idle + here.idle_between(0)), before_last_forward(here)) + back
