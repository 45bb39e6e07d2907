"""Arguments about one device: its load, its idle time, and the number of micro-batches that its memory admits."""

from __future__ import annotations

from pipesched.checking.devices.one_device import OneDevice
from pipesched.checking.finding import RefusedEvidenceError
from pipesched.problem.problem import Problem
from pipesched.problem.quantities import Ticks
from pipesched.results.evidence import OnDevice, OnStage


def load(problem: Problem, evidence: OnDevice) -> Ticks:
    """Argument: a device does all its work, one pass at a time; for the makespan after its first pass can start.

    Returns the lower bound in ticks. Raises `RefusedEvidenceError` if there is no such device or no micro-batch passes
    it.
    """
    here = OneDevice(problem, evidence.device)
    return (here.first_start if problem.objective.from_zero else 0) + here.work


def round_trip(problem: Problem, evidence: OnDevice) -> Ticks:
    """Argument: a device's work and its idle time, before the first backward and after the last forward.

    If a backward starts before the last forward, the two idle times are apart and add up. If none does, they may be the
    same time, and the longer one counts. Returns the lower bound in ticks. Raises `RefusedEvidenceError` if there is no
    such device or no micro-batch passes it.
    """
    here = OneDevice(problem, evidence.device)
    at_last = here.idle_at_last()
    idle = here.idle_at_first(some_forward_later=True) + here.idle_between(0) + at_last
    if not here.backward_before_last_forward:
        idle = min(idle, max(here.idle_at_first(some_forward_later=False), at_last))
    return load(problem, evidence) + idle


def in_flight_limit(problem: Problem, evidence: OnStage) -> Ticks:
    """Argument: memory admits a number of micro-batches to a stage at once, and later ones wait until one frees memory.

    Returns the lower bound in ticks. Raises `RefusedEvidenceError` for a stage that does not exist, that no micro-batch
    passes, or whose micro-batches memory does not limit.
    """
    if not 0 <= evidence.stage < len(problem.stages):
        raise RefusedEvidenceError(f"there is no stage {evidence.stage}")
    here = OneDevice(problem, problem.placement.stage_device[evidence.stage])
    times, count = here.times[evidence.stage], here.count[evidence.stage]
    admitted, cycle = here.rounds(evidence.stage)
    rounds = -(-count // admitted)
    if rounds < 1:
        raise RefusedEvidenceError(f"no micro-batch passes stage {evidence.stage}")
    before = times.begins if problem.objective.from_zero else 0
    return before + (rounds - 1) * cycle + times.gradient_begins - times.begins + times.backward
