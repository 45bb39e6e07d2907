"""Simulated annealing over partitions and orders together, or over partitions alone where the order is given.

A step moves one or two layers to other stages, or changes the recomputation or the micro-batches in flight. The same
order is simulated with the new stage costs and, where its value is close to the best, improved by a short annealing of
the order. The search finds plans and proves nothing; every candidate is validated by the caller that receives it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from math import log
from random import Random
from typing import NamedTuple

from pipesched.layers.plan_problem import Choice, PlanProblem
from pipesched.problem.passes_alone import passes_alone
from pipesched.problem.quantities import Ticks
from pipesched.results.plan import PlanCandidate
from pipesched.schedule.once_an_iteration import completed, uncompleted
from pipesched.schedule.timeline import Timeline
from solver.construction.timing import best_times
from solver.engine.kernels import kernels_for
from solver.parameters import tunable, tuned
from solver.planning.joint.draft import StageSums
from solver.planning.joint.given_order import GivenOrder
from solver.planning.joint.loads import Loads
from solver.planning.joint.moves import Moves, Proposal
from solver.planning.joint.orders import EvaluatedOrder, OrderArrays


@dataclass(frozen=True)
@tunable
class JointParams:
    """Parameters of the annealing of partitions and orders together.

    Temperatures are shares of the value unless noted.
    """

    temperatures: tuple[float, ...] = tuned(
        (0.01 * 0.1**0.5, 0.01 * 0.1**1.5, 0.01, 0.01 * 0.1), "of the value, at first, round after round", 1e-6, 1
    )
    last_temperature: float = tuned(0.01 * 0.1**1.5 / 8, "of the value, at the end of each round", 1e-8, 1)
    order_temperatures: tuple[float, ...] = tuned(
        (1 / 4, 1 / 32), "mean durations of a pass, for the order of a good plan, drawn", 1e-3, 10
    )
    most_order_moves: int = tuned(5_000, "moves of that annealing", 10, 10**6)
    order_work: int = tuned(1_500_000, "moves x passes of that annealing, at most", 1000, 10**9)
    restart_moves: int = tuned(20_000, "moves for the order of the first partition, where a round restarts", 10, 10**7)
    annealed_within: float = tuned(0.05, "of the best value: plans that much worse have their order annealed", 0, 1)


_PARAMS = JointParams()


def _order_moves(passes: int) -> int:
    """Return the number of moves of a short annealing of an order with `passes` passes."""
    return min(_PARAMS.most_order_moves, _PARAMS.order_work // passes)


# Sums of this many ticks fit the 64-bit integers of compiled code.
_MOST_TICKS = 2**60


def applies(candidate: PlanCandidate) -> bool:
    """True if the joint search supports the candidate's problem.

    Its passes must be single tasks of whole micro-batches, no two of which run as one block, and whose times, summed in
    ticks, fit 64-bit integers. Gathers, reductions and optimizer steps of the stages are ignored here.
    """
    problem = passes_alone(candidate.timeline.problem, min)
    total = sum(stage.forward + stage.backward + (stage.weight or 0) + stage.fused for stage in problem.stages)
    paired = candidate.timeline.problem.overlaps and any(
        len(slot) == 2 for order in candidate.timeline.schedule.orders for slot in order
    )
    return (
        not paired
        and problem.chain_arcs.pieces == 1
        and problem.network.one_task_each
        and total * problem.microbatches < _MOST_TICKS
    )


class _State(NamedTuple):
    """A partition and order that were evaluated, with objective value and annealing energy in ticks."""

    value: Ticks
    energy: float
    proposal: Proposal


class JointSearch:
    """Joint search over partition and order of the placement `choice` from the plan `start`; `best` is the best met.

    `applies(start)` must be True. `best` is a state, whose value is in ticks of the plan problem. Without `free_order`
    the order stays that of `start`. `seed` is that of the random numbers. Gathers, reductions and optimizer steps of
    the stages are left out of the search and added to the best candidate at the end.
    """

    def __init__(self, plan: PlanProblem, choice: Choice, start: PlanCandidate, free_order: bool, seed: int) -> None:
        timeline = _of_microbatches(start.timeline)
        self._plan, self._choice, self._schedule = plan, choice, timeline.schedule
        self._name = "pipesched" if free_order else start.schedule
        self._random, self._rounds = Random(seed), 0
        placement = choice.on(plan.cluster.devices)
        self._sums = StageSums(plan, plan.slowness_of_places(placement))
        length = len(placement.chains[0])
        lags = [
            int(plan.cluster.lag(placement.stage_device[a], placement.stage_device[b]) / plan.tick)
            for a, b in pairwise(placement.chains[0])
        ]
        self._given = None if free_order else GivenOrder(timeline, length)
        self._orders = OrderArrays(timeline, length, lags, free_order)
        self._moves = Moves(plan, choice, self._sums, self._orders, free_order, self._random)
        self._effort = _order_moves(len(self._orders.units.slots)) if free_order else 0
        self._loads = Loads(plan, placement, lags)
        draft = self._sums.of_partition(start.partition)
        first = Proposal(draft, self._sums.costs(draft), self._orders.order)
        found = self._simulated(first)
        assert found is not None, "the order of a timeline runs to its end"
        self.best = self._now = self._first = _State(found.value, found.value + self._loads.uneven(first.costs), first)

    @property
    def value(self) -> Ticks:
        """Smallest objective value met, in ticks."""
        return self.best.value

    def run(self, progress: Callable[[], float]) -> bool:
        """Run one round of annealing until `progress()`, the share of the round that is done, reaches 1.

        It is called once each step. True if `best` improved. The starting temperatures of successive rounds cycle
        through a list. Where the order is free, every second round restarts from the first partition; the others
        continue from the best state. Nothing is run where a given order has a single partition.
        """
        if self._moves.none:
            return False
        heats = _PARAMS.temperatures if self._effort else sorted(_PARAMS.temperatures)[:-1]
        restarts, hot = bool(self._effort) and self._rounds % 2 == 0, heats[self._rounds % len(heats)]
        before = self.best
        self._now = self._restarted() if restarts else self.best
        while (over := progress()) < 1:
            self._step(self.best.value * hot * (_PARAMS.last_temperature / hot) ** over)
        better = self.best is not before
        # With a given order, the next temperature is due once a round found nothing better.
        self._rounds += bool(self._effort) or not better
        return better

    def _restarted(self) -> _State:
        """Return the state in which a round restarts: the first partition, its order annealed from a high temperature.

        For problems with many passes the first order is used unchanged, since annealing it would take too long.
        """
        first = self._first
        if self._effort < _PARAMS.most_order_moves // 4:
            return first  # annealing it would take too long
        self._orders.set_costs(first.proposal.costs)
        found = self._orders.annealed(first.proposal.order, _PARAMS.restart_moves, 1.0, self._random.randrange(2**31))
        if found is None:
            return first
        value, proposal = found.value, first.proposal._replace(order=found.order)
        return _State(value, value + self._loads.uneven(proposal.costs), proposal)

    def _step(self, temperature: float) -> None:
        random, now = self._random, self._now
        after = self._moves.propose(now.proposal.draft, now.proposal.order)
        if after is None:
            return
        uneven = self._loads.uneven(after.costs)
        # Energies up to this limit are accepted; a lower bound above it rejects the proposal without a simulation.
        limit = now.energy - temperature * log(1 - random.random()) - uneven
        if self._loads.bound(after.costs) > limit:
            return
        found = self._simulated(after)
        if found is not None and self._effort and found.value < self.best.value * (1 + _PARAMS.annealed_within):
            heat = random.choice(_PARAMS.order_temperatures)
            found = self._orders.annealed(found.order, self._effort, heat, random.randrange(2**31)) or found
        if found is None or found.value > limit:
            return
        self._now = _State(found.value, found.value + uneven, after._replace(order=found.order))
        if found.value < self.best.value:
            self.best = self._now

    def _simulated(self, proposal: Proposal) -> EvaluatedOrder | None:
        if self._given is not None:
            return EvaluatedOrder(self._given.value(proposal.costs), proposal.order)
        self._orders.set_costs(proposal.costs)
        return self._orders.annealed(proposal.order, 0, 1.0, 0)

    def candidate(self) -> PlanCandidate:
        """Return the best state met as a candidate with exact times; it is not validated."""
        proposal = self.best.proposal
        partition = self._sums.partition(proposal.draft)
        schedule = self._schedule
        if self._given is None:
            schedule = self._orders.schedule(proposal.order, self._name)
        problem = self._plan.problem(self._choice, partition)
        return PlanCandidate(self._choice, partition, best_times(problem, completed(problem, schedule)), self._name)


def _of_microbatches(timeline: Timeline) -> Timeline:
    """Return the timeline with only the passes of micro-batches, without gathers, reductions and optimizer steps."""
    problem = passes_alone(timeline.problem, min)
    return timeline if problem is timeline.problem else best_times(problem, uncompleted(timeline.schedule))


def kernels_ready(candidate: PlanCandidate, over: Callable[[], bool]) -> bool:
    """Wait for the compiled code of the joint search until `over()` is True; True if the code is ready."""
    kernels = kernels_for(passes_alone(candidate.timeline.problem, min))
    kernels.begin()
    return kernels.wait(over)
