"""Lower bounds on the period: load, in-flight limit, memory over time, and both over all modes, per micro-batch.

The period of a problem is the increase of its makespan for each further micro-batch, in the limit of many
micro-batches. Schedules of two batches run one after the other are a schedule of both, so the period is at most the
makespan of m micro-batches divided by m.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial

from pipesched.problem.formatting import amount, counted, memory_text, plain
from pipesched.problem.problem import Problem
from pipesched.problem.relaxed.pass_memory import drop_pass_memory
from pipesched.results.certificate import Certificate
from pipesched.results.evidence import Evidence, OnDevice, OnStage
from solver.bounds.analytic.critical_paths import Paths
from solver.bounds.analytic.idle_time.memory_energy import area
from solver.bounds.analytic.in_flight import until_room
from solver.bounds.analytic.load import load
from solver.cyclic.mode_bound import mode_bound


@dataclass(frozen=True)
class PeriodCertificate:
    """Proof that no schedule repeats in less than `value` ticks per micro-batch, whatever it repeats."""

    kind: str
    value: Fraction
    text: str
    device: int
    evidence: Evidence


def period_certificates(problem: Problem) -> list[PeriodCertificate]:
    """Return all certificates, strongest first; if passes are several tasks, one for the work of each stream."""
    poorer = drop_pass_memory(problem)
    unit = one_of_each_chain(poorer)
    if poorer.view is None:
        return sorted(map(partial(_of_stream, unit), load(unit, unit.objective)), key=lambda one: -one.value)
    paths = Paths(unit)
    found: list[PeriodCertificate] = []
    devices = range(unit.devices)
    found += [_load(unit, paths, device) for device in devices]
    for stage, microbatches in enumerate(unit.microbatches_of):
        if microbatches:
            found += _in_flight_limit(unit, paths, stage)
    for device in devices:
        found += _level(unit, paths, device)
    found += _over_modes(unit)
    return sorted(found, key=lambda certificate: -certificate.value)


def one_of_each_chain(problem: Problem) -> Problem:
    """Return the same problem with one micro-batch for each chain that has any: one long-run repetition."""
    walked = sum(bool(problem.microbatches_of[chain[0]]) for chain in problem.placement.chains)
    return replace(problem, microbatches=walked)


def _each(unit: Problem) -> str:
    return "micro-batch" if unit.microbatches == 1 else f"{unit.microbatches} micro-batches (one of each chain)"


def _load(unit: Problem, paths: Paths, device: int) -> PeriodCertificate:
    """Return the certificate that a device runs one pass at a time."""
    work = paths.work(device)
    value = Fraction(work, unit.microbatches)
    text = f"Device {device} computes {amount(unit, work)} for every {_each(unit)} one pass at a time"
    text += f": {amount(unit, value)} a micro-batch."
    return PeriodCertificate("load", value, text, device, OnDevice(device))


def _of_stream(unit: Problem, one: Certificate) -> PeriodCertificate:
    """Return the certificate that a stream runs one task at a time."""
    value = Fraction(one.value_ticks, unit.microbatches)
    assert one.device is not None and one.evidence is not None
    text = f"For every {_each(unit)}: {one.text} That is {amount(unit, value)} a micro-batch."
    return PeriodCertificate("load", value, text, one.device, one.evidence)


def _in_flight_limit(unit: Problem, paths: Paths, stage: int) -> list[PeriodCertificate]:
    """Return the certificate of a stage's in-flight limit.

    If memory admits K micro-batches to the stage, then K of them take one round trip at least.
    """
    device = unit.placement.stage_device[stage]
    capacity, activation = unit.room[device], unit.network.memory_in_flight[stage]
    if capacity is None or activation == 0 or capacity < activation:
        return []
    admitted = capacity // activation
    cycle = paths.forward[stage] + paths.round_trip[stage] + until_room(paths, stage, capacity, admitted)
    value = Fraction(cycle, admitted * unit.microbatches)
    many = counted(admitted, "micro-batch")
    text = (
        f"The memory of device {device} admits {many} to stage {stage} at once. From the start of a "
        f"forward there until its memory serves another at least {amount(unit, cycle)} pass, in which no more than "
        f"{counted(admitted, 'forward')} start: {amount(unit, value)} a micro-batch."
    )
    return [PeriodCertificate("in-flight limit", value, text, device, OnStage(stage))]


def _level(unit: Problem, paths: Paths, device: int) -> list[PeriodCertificate]:
    """Return the certificate of Little's law for a device's memory.

    The memory times time that a micro-batch takes of a device is at most that which the device has.
    """
    capacity = unit.room[device]
    stages = [s for s in unit.placement.stages_of[device] if unit.microbatches_of[s]]
    if not capacity or not stages:
        return []
    taken = sum(area(paths, stage) for stage in stages)
    value = Fraction(taken, capacity * unit.microbatches)
    product = plain(float(taken * unit.resolution * unit.tick))
    text = (
        f"For every {_each(unit)} device {device} holds activations from forward to backward: memory times time, at "
        f"least {product} {unit.memory_unit} x {unit.time_unit or 'time unit'}. Its "
        f"{memory_text(unit, capacity)} give that in no less than {amount(unit, value)} a micro-batch."
    )
    return [PeriodCertificate("memory over time", value, text, device, OnDevice(device))]


def _over_modes(unit: Problem) -> list[PeriodCertificate]:
    """Return the certificate of load and memory over time together, if a mode saves one and costs the other."""
    bound = mode_bound(unit)
    if bound is None or not bound.devices:
        return []
    value = bound.value / unit.microbatches
    which = ", ".join(map(str, bound.devices))
    text = (
        "Overlapped blocks and full backwards change what a device computes and how long it holds activations. Over "
        "all shares of micro-batches that run in each mode, the times and the memory times time of "
        f"{'device' if len(bound.devices) == 1 else 'devices'} {which}, each times a multiplier, add up to at least "
        f"{amount(unit, value)} a micro-batch."
    )
    return [PeriodCertificate("load and memory over modes", value, text, bound.devices[0], bound.evidence)]
