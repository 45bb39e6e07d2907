"""Random changes of a partition and its order: move layers, change the recomputation or micro-batches in flight."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from random import Random
from typing import NamedTuple

from pipesched.int64_arrays import IntArray
from pipesched.layers.plan_problem import Choice, Decide, PlanProblem
from pipesched.problem.quantities import DeviceId
from solver.parameters import tunable, tuned
from solver.planning.joint.draft import Costs, Draft, StageSums
from solver.planning.joint.orders import OrderArrays
from solver.planning.joint.recomputation import recomputation_of


@dataclass(frozen=True)
@tunable
class JointMoveParams:
    """Limit of one random change of a partition: on how many stages less is recomputed at once."""

    most_trims: int = tuned(6, "stages, on which less is recomputed at once", 1, 100)


_PARAMS = JointMoveParams()


class Proposal(NamedTuple):
    """A draft with its costs, and an order under which it fits the memory.

    `order` has shape (devices, most passes of a device): pass numbers of `OrderArrays`, padded with -1.
    """

    draft: Draft
    costs: Costs
    order: IntArray


class Moves:
    """Generator of random changes of a partition (as a draft) and its order, on the placement `choice`.

    The order stays the same without `free_order`. All draws are from `random`; `sums` has the costs of drafts, `orders`
    the memory of orders.
    """

    def __init__(
        self, plan: PlanProblem, choice: Choice, sums: StageSums, orders: OrderArrays, free_order: bool, random: Random
    ) -> None:
        self._sums, self._orders, self._free_order, self._random = sums, orders, free_order, random
        placement = choice.on(plan.cluster.devices)
        self._stages_of, self._length = placement.stages_of, len(placement.chains[0])
        self._allowed = plan.model.cuts
        self._least = plan.model.least_layers
        self._number = {cut: at for at, cut in enumerate(self._allowed)}
        self._cuts_move = plan.counts is None and self._length > 1
        self._recompute = plan.recompute is Decide.FREE and bool(sums.modes)
        self._limited = plan.cluster.capacity is not None
        self._again = recomputation_of(plan, sums, random)
        # Kinds of change: layers (twice as often, between neighbouring or any two stages), recomputation, micro-batches
        # in flight.
        recomputes, flies = self._recompute and self._limited, self._free_order and self._limited
        self._kinds = [0, 0] * self._cuts_move + [1] * recomputes + [2] * flies

    @property
    def none(self) -> bool:
        """True if a draft cannot be changed, nor its order."""
        return not self._kinds and not self._free_order

    def propose(self, draft: Draft, order: IntArray) -> Proposal | None:
        """Return a randomly changed draft and order that fit the memory.

        None if the change that was drawn leads to none.
        """
        kind, after = self._random.choice(self._kinds or [3]), draft
        if kind == 0:
            cuts = self._moved(draft.cuts)
            if cuts is None:
                return None
            after = self._again.clipped(cuts, draft.recomputed)
        elif kind == 1:
            after = self._again.less(draft)
        elif kind == 2:
            order = self._in_flight(order, self._random.random() < 0.5)
        return self.repaired(after, order)

    def repaired(self, draft: Draft, order: IntArray) -> Proposal | None:
        """Return the draft and order changed until they fit the memory; None if that fails.

        Device by device, more layers are recomputed or, with a free order, fewer micro-batches are in flight. Then
        recomputation is removed again where the memory suffices without it.
        """
        costs = self._sums.costs(draft)
        for device in range(len(self._stages_of)) if self._limited else ():
            while not self._orders.fits(order, device, costs):
                fewer = self._free_order and self._random.random() < 1 / 2
                more = None if fewer else self._more_recomputed(draft, device)
                if more is not None:
                    draft, costs = more, self._sums.costs(more)
                    continue
                before = order
                order = self._in_flight(order, False, device) if self._free_order else order
                if (order == before).all() and (not fewer or self._more_recomputed(draft, device) is None):
                    return None
        return (
            self._trimmed(Proposal(draft, costs, order))
            if self._limited and self._recompute
            else Proposal(draft, costs, order)
        )

    def _moved(self, cuts: tuple[int, ...]) -> tuple[int, ...] | None:
        """Return the cuts with a random run of consecutive cuts moved to the adjacent allowed position, once or twice.

        None if there is no such position, or a stage becomes smaller than allowed.
        """
        random, moved = self._random, list(cuts)
        for _ in range(2 if random.random() < 1 / 2 else 1):
            one = random.randrange(1, self._length)
            other = one if random.random() < 1 / 2 else random.randrange(1, self._length)
            step = random.choice((-1, 1))
            for at in range(min(one, other), max(one, other) + 1):
                place = self._number[moved[at]] + step
                if not 0 <= place < len(self._allowed):
                    return None
                moved[at] = self._allowed[place]
        if any(b - a < self._least for a, b in pairwise(moved)):
            return None
        return tuple(moved)

    def _more_recomputed(self, draft: Draft, device: DeviceId) -> Draft | None:
        """Return the draft with one more layer recomputed on a random stage of `device`; None if no more can be."""
        if not self._recompute:
            return None
        return self._again.more(draft, {stage % self._length for stage in self._stages_of[device]})

    def _in_flight(self, order: IntArray, earlier: bool, device: DeviceId | None = None) -> IntArray:
        device = self._random.randrange(len(self._stages_of)) if device is None else device
        stage = self._random.choice(self._stages_of[device])
        return self._orders.shifted(order, device, stage, earlier)

    def _trimmed(self, proposal: Proposal) -> Proposal:
        """Return the proposal with less recomputation on a few random stages, where the memory suffices without."""
        draft, costs, order = proposal
        for _ in range(_PARAMS.most_trims):
            less = self._again.less(draft)
            if less is draft:
                break
            other = self._sums.costs(less)
            pairs = zip(less.recomputed, draft.recomputed, strict=True)
            changed = {stage for stage, (now, before) in enumerate(pairs) if now != before}
            devices = [d for d, own in enumerate(self._stages_of) if any(s % self._length in changed for s in own)]
            if all(self._orders.fits(order, device, other) for device in devices):
                draft, costs = less, other
        return Proposal(draft, costs, order)
