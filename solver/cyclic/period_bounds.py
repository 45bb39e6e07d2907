"""Lower bounds on the period: load, in-flight limit, memory over time, and both over all modes, per micro-batch.

The period of a problem is the increase of its makespan for each further micro-batch, in the limit of many
micro-batches. Schedules of two batches run one after the other are a schedule of both, so the period is at most the
makespan of m micro-batches divided by m. In these functions `unit` is the problem with one micro-batch on each chain.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache, partial

from pipesched.errors import left_out_note
from pipesched.problem.formatting import amount, counted, memory_text, plain
from pipesched.problem.problem import Problem
from pipesched.problem.quantities import DeviceId, StageId
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
    """Proof, as text and evidence, that no schedule repeats in less than `value` ticks per micro-batch.

    This holds whatever the schedule repeats. `value` is in ticks; `device` is the first of those that the argument is
    about.
    """

    kind: str
    value: Fraction
    text: str
    device: DeviceId
    evidence: Evidence


NOTHING = PeriodCertificate("none", Fraction(0), "No time is below zero.", 0, OnDevice(0))


def period_certificates(problem: Problem, notes: list[str] | None = None) -> list[PeriodCertificate]:
    """Return all certificates of a lower bound on the period, in descending order of value.

    Values are in ticks of `problem` per micro-batch. Where passes are several tasks there is one for the work of each
    stream, and no other kind. With `notes` a bound that fails is left out and noted there, else its error is raised.
    Where there is no other certificate, that of zero is returned.
    """
    unit, found = cache(lambda: one_of_each_chain(drop_pass_memory(problem))), list[PeriodCertificate]()
    for name, certify in _BOUNDS.items():
        try:
            found += certify(unit())
        except Exception as error:
            if notes is None:
                raise
            notes.append(left_out_note(f"the bound {name!r}", error))
    return sorted(found, key=lambda certificate: -certificate.value) or [NOTHING]


def one_of_each_chain(problem: Problem) -> Problem:
    """Return the same problem with one micro-batch for each chain that has any.

    That is the unit that a steady state repeats.
    """
    walked = sum(bool(problem.microbatches_of[chain[0]]) for chain in problem.placement.chains)
    return replace(problem, microbatches=walked)


def _each(unit: Problem) -> str:
    return "micro-batch" if unit.microbatches == 1 else f"{unit.microbatches} micro-batches (one of each chain)"


def _loads(unit: Problem) -> list[PeriodCertificate]:
    """Return a certificate of the load of every device, which runs one pass at a time.

    Where passes have several tasks there is one for every stream. Values are in ticks per micro-batch.
    """
    if unit.view is None:
        return list(map(partial(_of_stream, unit), load(unit, unit.objective)))
    paths = Paths(unit)
    return [_load(unit, paths, device) for device in range(unit.devices)]


def _in_flight_limits(unit: Problem) -> list[PeriodCertificate]:
    if unit.view is None:
        return []
    paths, walked = Paths(unit), [stage for stage, own in enumerate(unit.microbatches_of) if own]
    return [one for stage in walked for one in _in_flight_limit(unit, paths, stage)]


def _levels(unit: Problem) -> list[PeriodCertificate]:
    if unit.view is None:
        return []
    paths = Paths(unit)
    return [one for device in range(unit.devices) for one in _level(unit, paths, device)]


def _load(unit: Problem, paths: Paths, device: DeviceId) -> PeriodCertificate:
    """Return the certificate of a device's load, in ticks per micro-batch.

    That is the least time of its passes for one micro-batch of each chain, divided by the number of these chains.
    """
    work = paths.work(device)
    value = Fraction(work, unit.microbatches)
    text = f"Device {device} computes {amount(unit, work)} for every {_each(unit)} one pass at a time"
    text += f": {amount(unit, value)} a micro-batch."
    return PeriodCertificate("load", value, text, device, OnDevice(device))


def _of_stream(unit: Problem, one: Certificate) -> PeriodCertificate:
    """Return the period's certificate that a stream runs one task at a time.

    It is made from that of the stream's load in one repetition.
    """
    value = Fraction(one.value_ticks, unit.microbatches)
    assert one.device is not None and one.evidence is not None
    text = f"For every {_each(unit)}: {one.text} That is {amount(unit, value)} a micro-batch."
    return PeriodCertificate("load", value, text, one.device, one.evidence)


def _in_flight_limit(unit: Problem, paths: Paths, stage: StageId) -> list[PeriodCertificate]:
    """Return the certificate of a stage's in-flight limit, in a list.

    Empty where the device's memory is unlimited or admits none, or the stage has no activation.
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


def _level(unit: Problem, paths: Paths, device: DeviceId) -> list[PeriodCertificate]:
    """Return the certificate of Little's law for a device's memory, in a list.

    Empty where the memory is unlimited or 0, or the device has no passes.
    The memory times time that a micro-batch takes of a device is at most what the device has within a period.
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
    """Return the certificate of load and memory over time together, in a list.

    Empty where no stage has several modes, where passes are several tasks, or if the linear program is not solved.
    """
    bound = None if unit.view is None else mode_bound(unit)
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


_BOUNDS: Mapping[str, Callable[[Problem], list[PeriodCertificate]]] = {
    "load": _loads,
    "in-flight limit": _in_flight_limits,
    "memory over time": _levels,
    "load and memory over modes": _over_modes,
}
