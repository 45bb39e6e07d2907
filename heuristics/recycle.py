"""ReCycle: parallel pipelines in which workers of some run the passes of a lost worker of another."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from heuristics.catalogue import HEURISTICS, Heuristic
from pipesched.deadline import SHORT, asking
from pipesched.errors import DoesNotApply
from pipesched.problem.passes import BW, B, F, Pass, W
from pipesched.problem.placement import bidirectional
from pipesched.problem.problem import Problem
from pipesched.problem.quantities import Ticks
from pipesched.schedule.schedule import Schedule, schedule_of

_TURN = {B: 0, BW: 0, F: 1, W: 2}  # of passes that could start at the same time


@dataclass
class _Device:
    """State of a device while its order is built: its order, the tick at which it is free, and the ready passes.

    `arrivals` is the earliest start of each ready pass; `in_flight` counts forwards whose backward has not run, at most
    `most`.
    """

    most: int
    free: Ticks = 0
    in_flight: int = 0
    arrivals: dict[Pass, Ticks] = field(default_factory=dict)
    order: list[Pass] = field(default_factory=list)

    def next(self) -> tuple[Ticks, int, Ticks, Pass] | None:
        """Return (start, priority, arrival, pass) of the device's next pass; None if it waits for other devices.

        Start and arrival are in ticks. It is the pass that starts first, of several that with the lowest priority
        number.
        """
        able = [
            (max(self.free, arrival), _TURN[p.kind], arrival, p)
            for p, arrival in self.arrivals.items()
            if p.kind is not F or self.in_flight < self.most
        ]
        return min(able, default=None)

    def run(self, p: Pass, end: Ticks) -> None:
        del self.arrivals[p]
        self.free = end
        self.in_flight += (p.kind is F) - (p.kind in (B, BW))
        self.order.append(p)


def recycle(problem: Problem) -> Schedule:
    """Return 1F1B in which every device runs the pass that can start first; of those that can, B before F before W.

    Backwards are split where they may be, else full. The i-th device of a pipeline has up to p-i micro-batches in
    flight, and one more for every other chain that goes through it: the paper's adaptive pipelining with decoupled
    backwards, without its mixed-integer program. Each device has one position of all its chains, so those at the end of
    the chains can always continue, and after them all others. Raises `DoesNotApply` unless there are several separate
    pipelines of equal length, and all stages of a device have the same position in their pipelines.
    """
    devices = [_Device(most) for most in _most_in_flight(problem)]
    kinds = (F, *problem.network.backwards[0])
    microbatches_of = problem.microbatches_of
    passes = {Pass(kind, stage, j): None for stage, walk in enumerate(microbatches_of) for j in walk for kind in kinds}
    needs = {p: dict(problem.network.predecessors(p, passes)) for p in asking(passes, SHORT)}
    after: dict[Pass, list[Pass]] = {p: [] for p in passes}
    for p, before in needs.items():
        for q in before:
            after[q].append(p)
        if not before:
            devices[problem.device(p)].arrivals[p] = 0
    ends: dict[Pass, int] = {}
    for _ in asking(passes, SHORT):
        start, *_, p = min(choice for device in devices if (choice := device.next()) is not None)
        ends[p] = start + problem.duration(p)
        devices[problem.device(p)].run(p, ends[p])
        for other in after[p]:
            if all(q in ends for q in needs[other]):
                arrival = max(ends[q] + lag for q, lag in needs[other].items())
                devices[problem.device(other)].arrivals[other] = arrival
    return schedule_of([device.order for device in devices], "recycle")


def _most_in_flight(problem: Problem) -> list[int]:
    """Return the limit of micro-batches in flight of each device, by device, over all of its chains.

    It is p-i on the i-th device of its chains (of p), and one more for each further chain. Raises `DoesNotApply` unless
    there are several chains, equally long, and each device has one position in all of its chains.
    """
    where = problem.placement
    places = [
        Counter(chain.index(s) for chain in where.chains for s in chain if s in on_device)
        for on_device in where.stages_of
    ]
    lengths = {len(chain) for chain in where.chains}
    is_bidirectional = where == bidirectional(where.devices)
    apart = len(where.chains) > 1 and not (problem.chain_arcs.arcs or is_bidirectional)
    if not apart or len(lengths) > 1 or any(len(own) != 1 for own in places):
        raise DoesNotApply(f"needs pipelines side by side (pipelines: ...); the placement is {where.name}")
    (length,) = lengths
    return [length - place + chains - 1 for own in places for place, chains in own.items()]


HEURISTICS.register(
    Heuristic(
        name="recycle",
        reference="Gandhi et al., ReCycle, arXiv 2405.14009, without its mixed-integer program",
        needs="pipelines side by side, one stage of a chain on a device",
        bubble="no closed form",
        peak="at most p-i on the i-th device of a pipeline, and one more for each other chain through it",
        order=recycle,
    )
)
