"""A plan problem: model, cluster and micro-batches, and the choices allowed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from fractions import Fraction
from itertools import pairwise
from math import lcm
from typing import Any, NamedTuple

from pipesched.layers.addition import Addition
from pipesched.layers.cluster import Cluster
from pipesched.layers.fixed_module import FixedModule
from pipesched.layers.layer import LayerType
from pipesched.layers.model import Model
from pipesched.layers.parameters import Gathering, Parameters
from pipesched.layers.partition import Partition
from pipesched.layers.pieces import CUT_KEYS, WHOLE, SequenceCut, cut_from
from pipesched.layers.recompute_rule import RecomputeRule
from pipesched.layers.stage_costs import StageCosts, stage_costs
from pipesched.layers.training_step import TrainingStep
from pipesched.layers.with_fixed_modules import with_fixed_modules
from pipesched.problem.blocks import Blocks
from pipesched.problem.chains.sequence_chunks import in_sequence_chunks
from pipesched.problem.features.device_resources import DeviceResources, Pool
from pipesched.problem.features.gather_each_pass import gathering_each_pass
from pipesched.problem.features.parameters import OWN_PARAMETERS, StageParameters, most_gathers
from pipesched.problem.kv_cache import KvCache
from pipesched.problem.objective import Leaves as Leaves  # noqa: PLC0414 - who reads a plan names it
from pipesched.problem.objectives.makespan import MAKESPAN
from pipesched.problem.passes import REDUCE, STEP
from pipesched.problem.placement import PLACEMENTS, Placement
from pipesched.problem.problem import Objective, Problem
from pipesched.problem.quantities import MemorySteps, Ticks
from pipesched.problem.rendezvous import with_receipts
from pipesched.problem.stage import COMPUTE, Gather, Once, Stage, TaskSpec
from pipesched.problem.units import Units


class Choice(NamedTuple):
    """A choice of a plan: the `placement` by name, the stages of a chain on each device (`chunks`), and the `cut`.

    The cut is that of every micro-batch into pieces of its sequence.
    """

    placement: str
    chunks: int
    cut: SequenceCut = WHOLE

    @property
    def whole(self) -> bool:
        """True if micro-batches are not cut, so that a stage has one pass of each."""
        return self.cut.whole

    def on(self, devices: int) -> Placement:
        """Return the placement on this many devices, for whole micro-batches; KeyError for an unknown name."""
        return PLACEMENTS[self.placement](devices, self.chunks)

    def __str__(self) -> str:
        fixed = self.placement in ("linear", "v-shape", "bidirectional")
        where = self.placement if fixed else f"{self.placement}, {self.chunks} chunks"
        return where if self.whole else f"{where}, {self.cut}"

    def document(self) -> dict[str, Any]:
        """Return the keys `placement` and `chunks` of files and `--json`, and those of the cut if there is one."""
        return {"placement": self.placement, "chunks": self.chunks} | self.cut.document()


def placement_from(document: Mapping[str, Any]) -> Choice:
    """Read a choice from the keys of `Choice.document`; KeyError, TypeError or ValueError for any other form."""
    return Choice(str(document["placement"]), int(document["chunks"]), cut_from(document))


def choice_from_row(row: Sequence[Any]) -> Choice:
    """Read a choice from its values: placement, chunks, and if micro-batches are cut pieces and the rule of lengths.

    They are the values of `Choice.document`. Raises no other errors than `placement_from`.
    """
    return placement_from(dict(zip(("placement", "chunks", *CUT_KEYS), row, strict=False)))


class Decide(StrEnum):
    """The decision about recomputation: `FREE` to the search, `NEVER` any, or `ALWAYS` all layers.

    With `ALWAYS` every layer that has a recomputation mode is recomputed in its first one.
    """

    FREE = "free"
    NEVER = "never"
    ALWAYS = "always"  # every layer that has a way, in its first way


@dataclass(frozen=True)
class PlanProblem:
    """Everything that a plan file says. Numbers are exact, multiples of `tick` (times) and `resolution` (memory).

    `choices` are the placements allowed. `counts` are the numbers of layers of each stage of a chain, None unless
    given; `even` asks for numbers as equal as possible. `schedules` are the published orders allowed, empty where the
    order is free. `assumptions` are those of the formulas if layers were derived from a model's shape, and `step`
    describes the training step around the pipeline, None if the file lists layers. `recompute_rule` says which layers
    may be recomputed together. With `whole_last` the last stage's B takes as long as its full backward and its W no
    time, for runtimes that do not split backwards there. `clusters` are the sets of devices allowed, each in an order,
    by name; empty if there is one. `parts` are the problems that it consists of, each with some of the clusters, where
    limits of a runtime differ with the number of devices; else empty.

    The layers of `model` are cut into stages. `additions` are what the problem has besides; if one has devices of its
    own, `cluster` has only the others. `leaves` is the free memory that is maximised before the time, None for the time
    alone. `frozen` are names of layers of which nothing trains; `adapter_rank` is the rank of LoRA adapters, which
    alone train in all other layers (None: weights train).
    """

    model: Model
    cluster: Cluster
    microbatches: int
    choices: tuple[Choice, ...]
    counts: tuple[int, ...] | None = None
    even: bool = False
    schedules: tuple[str, ...] = ()
    recompute: Decide = Decide.FREE
    objective: Objective = MAKESPAN
    name: str = "plan"
    time_unit: str = ""
    tick: Fraction = Fraction(1)
    resolution: Fraction = Fraction(1)
    notes: tuple[str, ...] = field(default=(), compare=False)
    assumptions: tuple[str, ...] = field(default=(), compare=False)
    step: TrainingStep | None = field(default=None, compare=False)
    recompute_rule: RecomputeRule = RecomputeRule.ANY
    whole_last: bool = False
    clusters: tuple[tuple[str, Cluster], ...] = ()
    additions: tuple[Addition, ...] = ()
    frozen: tuple[str, ...] = field(default=(), compare=False)
    adapter_rank: int | None = field(default=None, compare=False)
    leaves: Leaves | None = None
    parts: tuple[PlanProblem, ...] = ()
    _pieces: dict[Choice, tuple[PlanProblem, ...]] = field(init=False, compare=False, repr=False, default_factory=dict)

    @property
    def variants(self) -> dict[str, PlanProblem]:
        """The narrower problems, by name, that leave only partition, placement and order open.

        Empty if this is one itself.
        """
        if self.parts:
            return {name: each for part in self.parts for name, each in part.variants.items()}
        found = {name: replace(self, clusters=(), cluster=cluster) for name, cluster in self.clusters} or {"": self}
        for addition in self.additions:
            found = {
                f"{decision}; {name}".rstrip("; "): narrowed(each)
                for decision, narrowed in addition.open_decisions().items()
                for name, each in found.items()
            } or found
        return {} if list(found) == [""] else found

    @property
    def may_have_modules(self) -> bool:
        """True if a narrower problem, or this one, has modules."""
        return any(each.modules for each in self._narrowest)

    def allows(self, choice: Choice) -> bool:
        """Return True if a choice's placement has one chain, or several chains are possible in every narrower problem.

        They are not if there are modules, since a module feeds one copy of a stage, nor if devices at the same place of
        two chains differ in speed, since the stages at one place of all chains must take equal times.
        """
        return all(
            len(where.chains) == 1
            or (not each.modules and where.same_on_all_chains([*map(each.cluster.slowness_of, range(where.devices))]))
            for each in self._narrowest
            for where in (choice.on(each.cluster.devices),)
        )

    @property
    def _narrowest(self) -> tuple[PlanProblem, ...]:
        return (*self.variants.values(),) or (self,)

    def without_blocks(self) -> PlanProblem:
        """Return the problem in which no two passes run as one block."""
        layers = tuple(replace(layer, overlapped=None) for layer in self.model.layers)
        return replace(self, model=replace(self.model, layers=layers)) if self.model.overlaps else self

    @property
    def all_devices(self) -> Cluster:
        """The cluster with the devices of an addition's own as the last ones.

        The cluster itself if no addition has any. At most one addition has devices of its own, and only where all
        devices are equal: they are copies of the cluster's.
        """
        own = max((addition.own_devices for addition in self.additions), default=0)
        return self.cluster.of_equal(self.cluster.devices + own) if own else self.cluster

    @property
    def modules(self) -> tuple[FixedModule, ...]:
        """The stages that no partition changes; ValueError if several additions have some."""
        found = [own for addition in self.additions if (own := addition.modules(self))]
        if len(found) > 1:
            raise ValueError(f"found {len(found)} additions with modules; allowed: one")
        return found[0] if found else ()

    @property
    def every_layer(self) -> tuple[LayerType, ...]:
        """The layers that a partition cuts, then those of additions."""
        more = (layer for addition in self.additions for layer in addition.layers)
        return (*self.model.layers, *more)

    def problem(self, choice: Choice, partition: Partition) -> Problem:
        """Return the scheduling problem of a choice and a partition; every chain of the placement has the same stages.

        ValueError for a partition of another number of stages, and for more recomputed layers of a name than a stage
        has; KeyError for a mode that they do not have.
        """
        problem = in_sequence_chunks([piece._alone(choice, partition) for piece in self.pieces_of(choice)])
        problem = with_fixed_modules(problem, self)
        for addition in self.additions:
            problem = addition.added(problem, self)
        return problem

    def pieces_of(self, choice: Choice) -> tuple[PlanProblem, ...]:
        """Return a plan problem for each piece of a sequence, in which a layer costs what it costs for that piece.

        If the choice has a single piece, that is this plan problem.
        """
        if choice.whole:
            return (self,)
        if choice not in self._pieces:
            # Where a layer runs it takes whole ticks of its device.
            tick = self.tick * lcm(*(each.denominator for each in self.cluster.slowness))
            models = choice.cut.models(self.model, tick, self.resolution)
            self._pieces[choice] = tuple(replace(self, model=model) for model in models)
        return self._pieces[choice]

    def _alone(self, choice: Choice, partition: Partition) -> Problem:
        placement, cluster = choice.on(self.cluster.devices), self.all_devices
        where = self.costs(placement, partition)
        capacity = cluster.capacity
        limits = [None] * cluster.devices if capacity is None else [self._whole_memory(room) for room in capacity]
        gather = self.model.parameters.gather
        trunk = Problem(
            replace(placement, devices=cluster.devices),
            self.microbatches,
            tuple(self.stage(costs, not choice.whole, len(where), self.microbatches) for costs in where),
            tuple(Pool(limit) for limit in limits),
            self.objective if self.model.parameters.runs_once else self.objective.of_passes,
            self.name,
            Units(self.time_unit, self.tick, cluster.memory_unit, self.resolution),
            tuple(tuple(self.ticks(lag) for lag in row) for row in cluster.links),
            _resources(cluster.transfer_stream),
            parameters=StageParameters((), gather.most, gather.window) if gather else OWN_PARAMETERS,
            notes=self.notes,
        )
        return with_receipts(trunk) if cluster.rendezvous else trunk

    def costs(self, placement: Placement, partition: Partition) -> list[StageCosts]:
        """Return the costs of every stage of the placement on its device, by number of the stage.

        ValueError if the partition has more or fewer stages than a chain.
        """
        if partition.stages != len(placement.chains[0]):
            raise ValueError(
                f"found {partition.stages} stages; allowed: the {len(placement.chains[0])} of the placement"
            )
        costs = [*stage_costs(self.model, partition)]
        if self.whole_last:
            costs[-1] = replace(costs[-1], backward=costs[-1].fused, weight=Fraction(0))
        where = {stage: costs[at] for chain in placement.chains for at, stage in enumerate(chain)}
        devices = placement.stage_device
        return [where[stage].slowed(self.cluster.slowness_of(devices[stage])) for stage in range(placement.stages)]

    def least_lags(self, choice: Choice) -> list[tuple[Ticks, Ticks]]:
        """Return for each stage of a chain but the last the least ticks to the next stage, and back.

        The minimum is over all partitions.
        """
        where, lags = choice.on(self.cluster.devices), self.cluster.lag
        devices = [where.stage_device[stage] for stage in where.chains[0]]
        return [
            (self.ticks(lags(a, b)), self.least_gradient_lag(place, self.ticks(lags(b, a))))
            for place, (a, b) in enumerate(pairwise(devices))
        ]

    def least_gradient_lag(self, place: int, ticks: Ticks) -> Ticks:
        """Return the least ticks, over all partitions, of a gradient from the next stage of a chain to stage `place`.

        `place` counts the stages of the chain from 0; `ticks` is the time of the transfer if a gradient is sent. 0
        where stages 0 to `place` may all consist of frozen layers, since then none is sent.
        """
        return 0 if place < self.model.before_training else ticks

    def slowness_of_places(self, placement: Placement) -> tuple[Fraction, ...]:
        """Return the slowness of the device at each place of a chain; it is the same in all chains.

        Slowness is the factor by which a device multiplies the times of layers.
        """
        return tuple(self.cluster.slowness_of(placement.stage_device[stage]) for stage in placement.chains[0])

    def stage(self, costs: StageCosts, in_pieces: bool, stages: int, passes: int) -> Stage:
        """Return a stage of the problem, in ticks and steps of memory, from its costs in the file's units.

        `costs` are those on its device. `stages` is the number of stages that share a limit of gatherings, `passes`
        that of the stage's forwards in an iteration; both matter only if parameters are gathered. With `in_pieces` the
        costs are those of a piece of a micro-batch, and `kept_for_later` is its `kv_cache`; else it has none. The costs
        include recomputation, of which the stage has no modes. Parameters gathered before each pass are tasks of the
        passes, and `gather` is then None.
        """
        own = self.model.parameters
        each_pass = own.gather is not None and own.gather.each_pass
        stage = Stage(
            forward=self.ticks(costs.forward),
            backward=self.ticks(costs.backward),
            weight=None if costs.weight is None else self.ticks(costs.weight),
            fused=self.ticks(costs.fused),
            blocks=Blocks(saves=None if costs.block_saves is None else self.ticks(costs.block_saves)),
            transfer=0 if self.cluster.links else self.ticks(self.cluster.transfer),
            activation=self._whole_memory(costs.activation),
            freed=self._whole_memory(costs.freed),
            static=self._whole_memory(costs.memory),
            kv_cache=KvCache(self._whole_memory(costs.kept_for_later) if in_pieces else 0),
            gather=None if own.gather is None or each_pass else self._gather(costs, own.gather, stages, passes),
            once=tuple(self._once(costs, own)),
            forward_only=costs.forward_only,
        )
        if own.gather is None or not each_pass:
            return stage
        gathered = self._whole_memory(costs.gathered)
        return gathering_each_pass(stage, own.gather.of.stream, self.ticks(costs.gather), gathered)

    def _once(self, costs: StageCosts, own: Parameters) -> Iterator[Once]:
        """Yield the reduction of a stage's gradients and the optimizer step, as far as the plan has them."""
        if own.reduce is not None:
            task = TaskSpec(own.reduce.stream, self.ticks(costs.reduce / own.reduce.parts))
            yield Once(REDUCE, task, own.reduce.parts, own.reduce.each_microbatch)
        if own.step is not None:
            yield Once(STEP, TaskSpec(COMPUTE, self.ticks(costs.step)))

    def _gather(self, costs: StageCosts, own: Gathering, stages: int, passes: int) -> Gather:
        most = 1 if own.once else most_gathers(own.most, passes, stages)
        return Gather(TaskSpec(own.of.stream, self.ticks(costs.gather)), self._whole_memory(costs.gathered), most)

    def ticks(self, time: Fraction) -> Ticks:
        """Return a time, in the file's unit, in ticks, of which it must be a multiple."""
        ticks = time / self.tick
        assert ticks.denominator == 1, "times are multiples of the tick"
        return int(ticks)

    def _whole_memory(self, amount: Fraction) -> MemorySteps:
        level = amount / self.resolution
        assert level.denominator == 1, "memory is in multiples of the resolution"
        return int(level)


def _resources(transfer_stream: str | None) -> DeviceResources:
    """Return the streams of a plan, compute first, if transfers have a stream of their own; else it names none."""
    return DeviceResources(() if transfer_stream in (None, COMPUTE) else (COMPUTE, transfer_stream), transfer_stream)
