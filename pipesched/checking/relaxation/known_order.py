"""Which operations of a device come before which in some best schedule of every problem.

An operation is a forward (F), a backward in either mode (B), or a weight pass (W), which is over in no time where the
backward is fused. Micro-batches of a chain are alike, so that passes of one kind on one stage may be taken to run in
their order: those of a later one that ran sooner change places with it.
"""

from __future__ import annotations

from pipesched.checking.least_times import least_backward
from pipesched.problem.passes import B, F, Pass, W
from pipesched.problem.problem import Problem


class KnownOrder:
    """Of operations on the same device."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._queue = problem.queues or tuple(range(len(problem.stages)))
        # The place of a stage on its chain, and what all chains have in common whose micro-batches keep one order.
        self._place = {stage: place for chain in problem.placement.chains for place, stage in enumerate(chain)}
        self._course = {stage: self._queue[chain[0]] for chain in problem.placement.chains for stage in chain}
        self.always_split = [self._always_split(stage) for stage in range(len(problem.stages))]
        self.room = [self._room(device) for device in range(problem.devices)]

    def _always_split(self, number: int) -> bool:
        """Whether B and then W take no longer and hold no more than a fused backward, where there are no blocks."""
        stage = self._problem.stages[number]
        if stage.weight is None or stage.freed < 0:
            return False
        return least_backward(stage) == stage.backward + stage.weight

    def _room(self, device: int) -> int | None:
        pool, placement = self._problem.pools[device], self._problem.placement
        static = sum(self._problem.stages[stage].static for stage in placement.stages_of[device])
        return None if pool.capacity is None else pool.capacity - pool.static - static

    def first(self, x: Pass, y: Pass) -> bool:
        """Whether x is known to come before y. Both are on one device."""
        if self._course[x.stage] != self._course[y.stage] or x.microbatch > y.microbatch or x == y:
            return False
        if x.kind is y.kind and self._in_line(x, y):
            return x.kind is not W or self.always_split[x.stage]
        return self._sooner_on_the_way(x, y) or self._makes_room(x, y)

    def _in_line(self, x: Pass, y: Pass) -> bool:
        return x.stage == y.stage if x.kind is W else self._queue[x.stage] == self._queue[y.stage]

    def _sooner_on_the_way(self, x: Pass, y: Pass) -> bool:
        """Whether a micro-batch comes through x's place sooner: forwards along the chain, then backwards along it.

        One that is no later than y's then has run x before y's runs y.
        """
        here, there = self._place[x.stage], self._place[y.stage]
        match x.kind, y.kind:
            case "F", "F":
                return here < there
            case "F", _:
                return True
            case "B", "B":
                return here > there
            case "B", "W":
                return here >= there
        return False

    def _makes_room(self, x: Pass, y: Pass) -> bool:
        """Whether the forward of y's micro-batch does not fit unless x has run, a backward or weight pass.

        If x had not, no later one of its kind on the stage had either: the micro-batches before x's may have given back
        all they held, and x's and those after it what a B gives back, if x is a W, or else nothing.
        """
        if x.stage != y.stage or x.kind is F or y.kind is W or (y.kind is B and x.kind is B):
            return False
        if x.kind is W and not self.always_split[x.stage]:
            return False
        room = self.room[self._problem.placement.stage_device[x.stage]]
        first = self._problem.microbatches_of[x.stage].start
        i, j = x.microbatch - first, y.microbatch - first
        if room is None or i >= j:
            return False
        stage = self._problem.stages[x.stage]
        given_back = i * stage.activation
        if x.kind is W:
            given_back += (j - i) * max(0, stage.freed)
        return (j + 1) * stage.activation - given_back > room
