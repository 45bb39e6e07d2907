"""What a plan decides and what is given: model, cluster, micro-batches, and the choices allowed."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum
from fractions import Fraction
from typing import NamedTuple

from pipesched.layers.cluster import Cluster
from pipesched.layers.model import Model
from pipesched.layers.partition import Partition
from pipesched.layers.recompute_rule import RecomputeRule
from pipesched.layers.stage_costs import StageCosts, stage_costs
from pipesched.layers.training_step import TrainingStep
from pipesched.problem.device_resources import Pool
from pipesched.problem.placement import PLACEMENTS, Placement
from pipesched.problem.problem import Objective, Problem
from pipesched.problem.stage import Stage


class Choice(NamedTuple):
    """A placement by its name, and the stages of a chain on each device."""

    placement: str
    chunks: int

    def on(self, devices: int) -> Placement:
        """The placement on so many devices."""
        return PLACEMENTS[self.placement](devices, self.chunks)

    def __str__(self) -> str:
        fixed = self.placement in ("linear", "v-shape", "bidirectional")
        return self.placement if fixed else f"{self.placement}, {self.chunks} chunks"


class Decide(StrEnum):
    """Who decides about recomputation: the search, or the user."""

    FREE = "free"
    NEVER = "never"
    ALWAYS = "always"  # every layer that has a way, in its first way


@dataclass(frozen=True)
class PlanProblem:
    """All that a plan file says. Numbers are exact, multiples of `tick` (times) and `resolution` (memory).

    `choices` are the placements allowed. `counts` are the layers of each stage where they are given; `even` asks for
    as equal numbers as there can be. `schedules` are the published orders allowed; empty where the order is free.
    `assumptions` are those of the formulas, where layers were derived from a model's shape, and `step` what surrounds
    the pipeline in a step of its training. `recompute_rule` says which layers may be recomputed together. With
    `whole_last` the last stage's B takes what its full backward takes, and its W nothing: for runtimes
    that split no backward there.
    """

    model: Model
    cluster: Cluster
    microbatches: int
    choices: tuple[Choice, ...]
    counts: tuple[int, ...] | None = None
    even: bool = False
    schedules: tuple[str, ...] = ()
    recompute: Decide = Decide.FREE
    objective: Objective = Objective.MAKESPAN
    name: str = "plan"
    time_unit: str = ""
    tick: Fraction = Fraction(1)
    resolution: Fraction = Fraction(1)
    notes: tuple[str, ...] = field(default=(), compare=False)
    assumptions: tuple[str, ...] = field(default=(), compare=False)
    step: TrainingStep | None = field(default=None, compare=False)
    recompute_rule: RecomputeRule = RecomputeRule.ANY
    whole_last: bool = False

    def problem(self, choice: Choice, partition: Partition) -> Problem:
        """The problem that a placement and a partition make; every chain of the placement has the same stages."""
        placement, cluster = choice.on(self.cluster.devices), self.cluster
        where = self.costs(placement, partition)
        capacity = cluster.capacity
        limits = [None] * cluster.devices if capacity is None else [self._whole_memory(room) for room in capacity]
        return Problem(
            placement,
            self.microbatches,
            tuple(map(self._stage, where)),
            tuple(Pool(limit) for limit in limits),
            self.objective,
            self.name,
            self.time_unit,
            self.tick,
            cluster.memory_unit,
            self.resolution,
            tuple(tuple(self._ticks(lag) for lag in row) for row in cluster.links),
            cluster.transfer_stream,
            notes=self.notes,
        )

    def costs(self, placement: Placement, partition: Partition) -> list[StageCosts]:
        """Of every stage of the placement, on its device."""
        costs = [*stage_costs(self.model, partition)]
        if self.whole_last:
            costs[-1] = replace(costs[-1], backward=costs[-1].fused, weight=Fraction(0))
        where = {stage: costs[at] for chain in placement.chains for at, stage in enumerate(chain)}
        devices = placement.stage_device
        return [where[stage].slowed(self.cluster.slowness_of(devices[stage])) for stage in range(placement.stages)]

    def slowness_of_places(self, placement: Placement) -> tuple[Fraction, ...]:
        """Of each place on a chain: that of its device, which is the same in all chains."""
        return tuple(self.cluster.slowness_of(placement.stage_device[stage]) for stage in placement.chains[0])

    def _stage(self, costs: StageCosts) -> Stage:
        return Stage(
            forward=self._ticks(costs.forward),
            backward=self._ticks(costs.backward),
            weight=None if costs.weight is None else self._ticks(costs.weight),
            fused=self._ticks(costs.fused),
            transfer=0 if self.cluster.links else self._ticks(self.cluster.transfer),
            activation=self._whole_memory(costs.activation),
            freed=self._whole_memory(costs.freed),
            static=self._whole_memory(costs.memory),
        )

    def _ticks(self, time: Fraction) -> int:
        ticks = time / self.tick
        assert ticks.denominator == 1, "times are multiples of the tick"
        return int(ticks)

    def _whole_memory(self, amount: Fraction) -> int:
        level = amount / self.resolution
        assert level.denominator == 1, "memory is in multiples of the resolution"
        return int(level)
