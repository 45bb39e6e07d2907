"""The operations of the exact model (forward, backward, weight), and the orders between them that are implied.

An operation stands for a pass whose kind is not yet decided: role B is the backward that sends the gradient on, run as
B or as BW; role W is the weight pass, of zero duration where the backward is fused.
"""

from __future__ import annotations

from typing import NamedTuple

from pipesched.problem.mode_gains import fused_is_dominated
from pipesched.problem.passes import B, F, PassKind, W
from pipesched.problem.problem import Problem


class Operation(NamedTuple):
    """Role F, B or W of one micro-batch on one stage."""

    role: PassKind
    stage: int
    microbatch: int


class StaticOrder:
    """The orders of operations on a device that hold in some optimal schedule of every problem.

    Micro-batches of a chain are identical, so on each stage forwards run in micro-batch order, and so do backwards, and
    weight passes where backwards are never fused: sorting the starts of one kind keeps a schedule valid. Where the
    order of unequal micro-batches is fixed, forwards and backwards of all stages of one queue run in it by rule.
    """

    def __init__(self, problem: Problem) -> None:
        if problem.microbatch_scale:
            raise ValueError("unequal micro-batches are solved as chains (`microbatch_chains`)")
        self.problem = problem
        self.roles: tuple[PassKind, ...] = (F, B, W) if problem.splittable else (F, B)
        placement = problem.placement
        self._place = {stage: place for chain in placement.chains for place, stage in enumerate(chain)}
        queue = problem.queue_of
        # Chains whose micro-batches keep one order have one number.
        self._course = [queue[placement.chains[chain][0]] for chain in placement.chain_index]
        self._holder = {(queue[s], j): s for s, walked in enumerate(problem.microbatches_of) for j in walked}
        # Where backwards may be fused, a weight pass of zero duration runs at its backward, out of micro-batch order.
        self._weights_in_microbatch_order = [fused_is_dominated(problem, stage) for stage in range(placement.stages)]

    def operations(self, device: int) -> list[Operation]:
        """All operations of a device."""
        return [
            Operation(role, stage, j)
            for stage in self.problem.placement.stages_of[device]
            for role in self.roles
            for j in self.problem.microbatches_of[stage]
        ]

    def in_microbatch_order(self, role: PassKind, stage: int) -> bool:
        """Whether operations of this role run in micro-batch order on the stage."""
        return role is not W or self._weights_in_microbatch_order[stage]

    def line(self, role: PassKind, stage: int) -> tuple[PassKind, int]:
        """What operations in micro-batch order have in common: their role, and their stage or its queue."""
        return role, stage if role is W else self.problem.queue_of[stage]

    def before_in_line(self, x: Operation) -> Operation | None:
        """The operation of the micro-batch before in the line of x, if there is one."""
        stage = self._holder.get((self.problem.queue_of[x.stage], x.microbatch - 1))
        if stage is None or (x.role is W and stage != x.stage):
            return None
        return Operation(x.role, stage, x.microbatch - 1)

    def precedes(self, x: Operation, y: Operation) -> bool:
        """Whether x is known to run before y; both are operations of one device, and differ."""
        if self._course[x.stage] != self._course[y.stage] or x.microbatch > y.microbatch:
            return False
        if x.role is y.role and self.line(x.role, x.stage) == self.line(y.role, y.stage):
            return self.in_microbatch_order(x.role, x.stage)
        return self._on_the_way(x, y) or self._forced(x, y)

    def _forced(self, x: Operation, y: Operation) -> bool:
        """Whether memory alone forces x before y: a forward of the same stage does not fit before x has run.

        With operations in micro-batch order, x of micro-batch i not run means none of a later one has either. Then at
        most i micro-batches have given all back, and those from i on at most what their B gives back if x is a W.
        """
        if x.stage != y.stage or x.role is F or y.role is W or not self.in_microbatch_order(x.role, x.stage):
            return False
        if y.role is B:
            # What must run before a forward must run before its backward too; for B itself that is known already.
            return x.role is W and self._forced(x, Operation(F, y.stage, y.microbatch))
        network, first = self.problem.network, self.problem.microbatches_of[x.stage].start
        capacity = self.problem.room[self.problem.placement.stage_device[x.stage]]
        i, j = x.microbatch - first, y.microbatch - first
        if capacity is None or i >= j:
            return False
        activation, freed = network.held_in_flight[x.stage], network.freed_by_backward[x.stage]
        most = i * activation + ((j - i) * max(0, freed) if x.role is W else 0)
        return most < (j + 1) * activation - capacity

    def _on_the_way(self, x: Operation, y: Operation) -> bool:
        """Whether a micro-batch passes through x's place before y's, of another role or stage.

        With forwards and backwards in micro-batch order, x of an earlier micro-batch then also precedes y.
        """
        here, there = self._place[x.stage], self._place[y.stage]
        if x.role is F:
            return y.role is not F or here < there
        if x.role is B:
            return (y.role is B and here > there) or (y.role is W and here >= there)
        return False

    def just_before(self, x: Operation) -> list[Operation]:
        """Operations of x's device known to run before x, the nearest of each line: the others follow from these."""
        stage, j = x.stage, x.microbatch
        near: list[Operation] = []
        earlier = self.before_in_line(x)
        if earlier is not None and self.in_microbatch_order(x.role, stage):
            near.append(earlier)
        if x.role is B:
            near.append(Operation(F, stage, j))
        if x.role is W:
            near.append(Operation(B, stage, j))
        if x.role is F:
            near += self._forced_before(x)
        neighbour = self._neighbour_on_device(stage, forwards=x.role is F)
        if x.role is not W and neighbour is not None:
            near.append(Operation(x.role, neighbour, j))
        return near

    def _forced_before(self, x: Operation) -> list[Operation]:
        """The latest B and the latest W that memory forces before a forward."""
        found = []
        for role in self.roles[1:]:
            earlier = range(self.problem.microbatches_of[x.stage].start, x.microbatch)
            forced = [j for j in earlier if self._forced(Operation(role, x.stage, j), x)]
            found += [Operation(role, x.stage, forced[-1])] if forced else []
        return found

    def _neighbour_on_device(self, stage: int, forwards: bool) -> int | None:
        """The stage of the same device and chain that a micro-batch visits just before this one."""
        placement = self.problem.placement
        chain = placement.chains[placement.chain_index[stage]]
        mates = [s for s in chain if placement.stage_device[s] == placement.stage_device[stage]]
        at = mates.index(stage) + (-1 if forwards else 1)
        return mates[at] if 0 <= at < len(mates) else None
