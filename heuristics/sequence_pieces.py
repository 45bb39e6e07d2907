"""Seq1F1B, SlimPipe and TeraPipe: micro-batches cut into pieces along the sequence, with backwards last piece first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from heuristics.building.interleaved_walks import Walk, one_forward_one_backward
from heuristics.catalogue import HEURISTICS, Heuristic
from pipesched.deadline import asking
from pipesched.errors import DoesNotApply
from pipesched.problem.passes import BW, F, Pass, Slot
from pipesched.problem.problem import Problem
from pipesched.problem.quantities import DeviceId, StageId
from pipesched.schedule.schedule import Schedule, schedule_of


def seq1f1b(problem: Problem) -> Schedule:
    """Return 1F1B of c pieces per micro-batch: the i-th of p devices (from 0) warms up with p-1-i + c-1 forwards.

    Backwards are full, the last piece of a micro-batch first. Raises `DoesNotApply` unless micro-batches are cut into
    pieces and there is one stage per device.
    """
    return _one_f_one_b(problem, _one_stage(problem), 1, "seq1f1b")


def slimpipe(problem: Problem) -> Schedule:
    """Return 1F1B of slices: all c slices of a sequence run through the v chunks of a device, and back in reverse.

    The i-th of p devices (from 0) runs vc-1 forwards first, and 2(p-1-i) more, so that it keeps little more than one
    sequence; with one chunk p-1-i more, as Seq1F1B. Raises `DoesNotApply` unless micro-batches are cut into pieces,
    stage s is on device s mod p, and the number of slices is a multiple of the devices, so that the slices of a chunk
    fill the round trip.
    """
    count, chunks = problem.chain_arcs.pieces, _round_robin(problem)
    if count % problem.devices:
        raise DoesNotApply(f"needs a multiple of {problem.devices} pieces (p); found {count}")
    lines = []
    for device in asking(range(problem.devices)):
        stages = [(chunk * problem.devices + device) * count for chunk in range(chunks)]
        lines.append(_device_passes(problem, device, [first + piece for first in stages for piece in range(count)]))
    return _one_f_one_b(problem, lines, 2 if chunks > 1 else 1, "slimpipe")


def terapipe(problem: Problem) -> Schedule:
    """Return GPipe of pieces: all forwards, then all full backwards in reverse order, the last piece first.

    Raises `DoesNotApply` unless micro-batches are cut into pieces and there is one stage per device.
    """
    orders: list[list[Pass]] = [[] for _ in range(problem.devices)]
    for line in _one_stage(problem):
        forwards = line.forwards
        orders[line.device] = [*forwards, *(Pass(BW, p.stage, p.microbatch) for p in reversed(forwards))]
    return schedule_of(orders, "terapipe")


class _DevicePasses(NamedTuple):
    """Forwards and backwards of a device in order; a micro-batch's backwards run the last stage and piece first.

    `per_microbatch` is the number of forwards for each micro-batch.
    """

    device: DeviceId
    forwards: list[Pass]
    backwards: list[Pass]
    per_microbatch: int


def _device_passes(problem: Problem, device: DeviceId, stages: Sequence[StageId]) -> _DevicePasses:
    microbatches_of = problem.microbatches_of
    rounds = range(len(microbatches_of[stages[0]]))
    forwards = [Pass(F, stage, microbatches_of[stage][j]) for j in rounds for stage in stages]
    backwards = [Pass(BW, stage, microbatches_of[stage][j]) for j in rounds for stage in reversed(stages)]
    return _DevicePasses(device, forwards, backwards, len(stages))


def _one_f_one_b(problem: Problem, lines: Sequence[_DevicePasses], hop: int, name: str) -> Schedule:
    """Return 1F1B of lines given in pipeline order: each device warms up with `hop` forwards more than the next one.

    The last device warms up with one forward less than it has for a micro-batch.
    """
    orders: dict[int, list[Slot]] = {}
    for place, (device, forwards, backwards, first) in enumerate(lines):
        warm_up = min(len(forwards), hop * (problem.devices - 1 - place) + first - 1)
        orders[device] = one_forward_one_backward(Walk(forwards, backwards, warm_up))
    return Schedule(tuple(tuple(orders[device]) for device in range(problem.devices)), name)


def _one_stage(problem: Problem) -> list[_DevicePasses]:
    """Require one stage (of each piece) per device, else `DoesNotApply`; return the lines in pipeline order."""
    count, where = problem.chain_arcs.pieces, problem.placement
    _of_pieces(problem)
    if len(where.chains) > count or where.stages != problem.devices * count:
        raise DoesNotApply(f"needs one stage on each device; found {where.stages // count} on {problem.devices}")
    places = zip(*where.chains, strict=True)
    return [_device_passes(problem, where.stage_device[stages[0]], stages) for stages in places]


def _round_robin(problem: Problem) -> int:
    """Require stage s on device s mod p, else `DoesNotApply`; return the number of chunks per device."""
    count, where = problem.chain_arcs.pieces, problem.placement
    _of_pieces(problem)
    alike = all(device == s // count % where.devices for s, device in enumerate(where.stage_device))
    if len(where.chains) > count or not alike or where.stages % (count * where.devices):
        raise DoesNotApply(f"needs stage s on device s mod p (placement: interleaved or linear); it is {where.name}")
    return where.stages // (count * where.devices)


def _of_pieces(problem: Problem) -> None:
    if problem.chain_arcs.pieces == 1:
        raise DoesNotApply("needs micro-batches of several pieces: give sequence_chunks")


HEURISTICS.register(
    Heuristic(
        name="seq1f1b",
        reference="Sun et al., Seq1F1B, arXiv 2406.03488",
        needs="sequence_chunks (c), one stage a device",
        bubble="pieces alike: (p-1)(F+BW) of one piece, of makespan",
        peak="p-i+c-1 pieces on the i-th device",
        order=seq1f1b,
    )
)
HEURISTICS.register(
    Heuristic(
        name="slimpipe",
        reference="Li et al., SlimPipe, arXiv 2504.14519 (its abstract; the warm-up is that of interleaved 1F1B)",
        needs="sequence_chunks (c), c a multiple of p; linear or interleaved placement, any number of chunks v",
        bubble="pieces alike: (p-1)(F+BW) of one piece and chunk, of makespan",
        peak="vc+2(p-1-i) pieces and chunks on the i-th device (v > 1), c+p-1-i (v = 1)",
        order=slimpipe,
    )
)
HEURISTICS.register(
    Heuristic(
        name="terapipe",
        reference="Li et al., TeraPipe, arXiv 2102.07988",
        needs="sequence_chunks (c), one stage a device",
        bubble="pieces alike: (p-1)(F+BW) of one piece, of makespan",
        peak="all pieces",
        order=terapipe,
    )
)
