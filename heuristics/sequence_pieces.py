"""Seq1F1B and TeraPipe: micro-batches of several pieces, of which backwards run the last one first."""

from __future__ import annotations

from collections.abc import Iterator

from heuristics.catalogue import HEURISTICS, Heuristic
from pipesched.errors import DoesNotApply
from pipesched.problem.passes import BW, F, Pass
from pipesched.problem.problem import Problem
from pipesched.schedule.schedule import Schedule, schedule_of


def seq1f1b(problem: Problem) -> Schedule:
    """1F1B of pieces: the i-th of p devices runs p-i forwards and c-1 more, then a backward and a forward in turn."""
    orders: list[list[Pass]] = [[] for _ in range(problem.devices)]
    for place, device, forwards, backwards in _lines(problem):
        first = min(len(forwards), problem.devices - 1 - place + problem.sequence_chunks - 1)
        own = orders[device]
        own += forwards[:first]
        for forward, backward in zip(forwards[first:], backwards, strict=False):
            own += (forward, backward)
        own += backwards[len(forwards) - first :]
    return schedule_of(orders, "seq1f1b")


def terapipe(problem: Problem) -> Schedule:
    """GPipe of pieces: all forwards, then all backwards, the last piece first."""
    orders: list[list[Pass]] = [[] for _ in range(problem.devices)]
    for _, device, forwards, _ in _lines(problem):
        orders[device] = [*forwards, *(Pass(BW, p.stage, p.microbatch) for p in reversed(forwards))]
    return schedule_of(orders, "terapipe")


def _lines(problem: Problem) -> Iterator[tuple[int, int, list[Pass], list[Pass]]]:
    """Of each device its place, its forwards in turn, and its backwards: by micro-batch, the last piece first."""
    count, where = problem.sequence_chunks, problem.placement
    if count == 1:
        raise DoesNotApply("needs micro-batches of several pieces: give sequence_chunks")
    if len(where.chains) > count or where.stages != problem.devices * count:
        raise DoesNotApply(f"needs one stage on each device; found {where.stages // count} on {problem.devices}")
    of = problem.microbatches_of
    for place, stages in enumerate(zip(*where.chains, strict=True)):
        rounds = range(len(of[stages[0]]))
        forwards = [Pass(F, stage, of[stage][j]) for j in rounds for stage in stages]
        backwards = [Pass(BW, stage, of[stage][j]) for j in rounds for stage in reversed(stages)]
        yield place, where.stage_device[stages[0]], forwards, backwards


HEURISTICS.register(
    Heuristic(
        name="seq1f1b",
        reference="Sun et al., Seq1F1B, arXiv 2406.03488",
        needs="micro-batches of c pieces (sequence_chunks), one stage a device",
        bubble="pieces alike: (p-1)(F+BW) of one piece, of makespan",
        peak="p-i+c-1 pieces on the i-th device",
        order=seq1f1b,
    )
)
HEURISTICS.register(
    Heuristic(
        name="terapipe",
        reference="Li et al., TeraPipe, arXiv 2102.07988",
        needs="micro-batches of c pieces (sequence_chunks), one stage a device",
        bubble="pieces alike: (p-1)(F+BW) of one piece, of makespan",
        peak="all pieces",
        order=terapipe,
    )
)
