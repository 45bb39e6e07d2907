"""Lower bounds valid for every order, as rows of a partition's variables: load, head and tail, round trips.

They are the arguments of the analytic bounds on one problem (solver/bounds/analytic), stated for all partitions at
once: sums of stages' times become linear expressions, and the number of micro-batches that memory admits becomes a
choice.
"""

from __future__ import annotations

from fractions import Fraction
from math import ceil, floor

from ortools.sat.python import cp_model

from formulations.partition.chain_paths import ChainPaths, PathLengths
from formulations.partition.extra_loads import ExtraLoads
from formulations.partition.memory_rows import MemoryRows
from formulations.partition.partition_model import PartitionModel
from formulations.partition.period_rows import PeriodRows
from formulations.partition.stage_terms import Linear, StageTerms
from pipesched.layers.plan_problem import Choice, PlanProblem
from pipesched.problem.quantities import DeviceId, Ticks
from pipesched.problem.stage import COMPUTE


class BoundRows:
    """Rows that make `value`, the objective in ticks, at least every bound of a partition on the placement `choice`.

    They are added to `model`, whose placement it is, by a call of `add`.
    """

    def __init__(self, model: PartitionModel, choice: Choice, value: cp_model.IntVar) -> None:
        self.model, self.value, self.plan = model, value, model.plan
        self._choice = choice
        self.span = self.plan.objective.by_device
        self._chain, self._capacity = ChainPaths(model, choice), model.capacity or None
        self._longest_step = None if model.extra.norm is None or self.span else self._chain.longest_step()

    def add(self) -> None:
        """Add the rows of every bound that applies: load, head and tail, memory; for a period those of `PeriodRows`."""
        self._memory()
        if self.plan.objective.repeats:
            self.model.cp.add(self.value >= mean_load(self.plan, self._choice))
            PeriodRows(self._chain, self.value, self._capacity).add()
            return
        paths = self.add_of_devices()
        # With pieces, memory admits parts of micro-batches, which these rows do not count.
        if paths is not None and self._capacity is not None and len(self.model.pieces) == 1:
            MemoryRows(self._chain, self.value, self._capacity).add(paths)

    def add_of_devices(self) -> PathLengths | None:
        """Add the rows of load, and of head and tail, of every device; return the path lengths of the chain.

        For several chains only the load is stated, and None returned.
        """
        for device in range(self._chain.placement.devices):
            self._load(device)
        of_modules = max(map(self.model.extra.load, range(self.plan.all_devices.devices)))
        self.model.cp.add(self.value >= max(of_modules, mean_load(self.plan, self._choice)))
        if not self._chain.one_chain:
            return None
        paths = self._chain.paths()
        for device in range(self._chain.placement.devices):
            self._head_and_tail(device, paths)
        return paths

    def _memory(self) -> None:
        """Add rows of memory: when a device's first backward begins, a micro-batch has all its activations there.

        Whenever one of its passes runs, its stage's gathered parameters are in memory in addition.
        """
        if self._capacity is None:
            return
        length = len(self._chain.chains[0])
        for device, capacity in enumerate(self._capacity):
            for chain in self._chain.chains:
                on = [s % length for s in chain if self._chain.placement.stage_device[s] == device]
                for needed in self.model.needs(on):
                    self.model.cp.add(self._chain.layers(device) + needed <= capacity)

    def _load(self, device: DeviceId) -> None:
        """Add rows that the objective is at least the work of each stream of a device, which runs one task at a time.

        A reduction and an optimizer step follow the last backward.
        """
        m, share = self.plan.microbatches, -(-self.plan.microbatches // len(self._chain.chains))

        def work(stage: int) -> Linear:
            number = min(share, max(0, m - self._chain.placement.chain_index[stage] * share))
            return number * self.model.terms[stage % len(self._chain.chains[0])].work

        passes = sum(map(work, self._chain.placement.stages_of[device])) + self.model.extra.load(device)
        terms = [self.model.terms[k] for k in self._chain.positions(device)]
        loads: dict[str, Linear] = {COMPUTE: passes + sum(one.step for one in terms)}
        gather, reduce, _ = self.plan.model.parameters
        for collective, own in ((gather and gather.of, "gather"), (reduce, "reduce")):
            if collective is not None:
                load = collective.parts * sum(getattr(one, own) for one in terms)
                loads[collective.stream] = loads.get(collective.stream, 0) + load
        for load in loads.values():
            self.model.cp.add(self.value >= load)
        self.model.cp.add(self.value >= passes + self._around(device))

    def _around(self, device: DeviceId) -> Linear:
        """Return the least ticks for a gather before a device's first pass, and for reduction and step after its last.

        Least over its stages.
        """
        gathers = self.model.extra.gathers
        before = self._chain.least(device, f"before{device}", lambda terms: terms.gather, gathers)
        return before + self._after(device)

    def _after(self, device: DeviceId) -> Linear:
        return self._chain.least(device, f"after{device}", self._once, self.model.extra.once)

    def _once(self, terms: StageTerms) -> Linear:
        """Return the ticks of reduction, norm and optimizer step after a stage's last backward.

        All buckets wait for the last backward of a stage, whose passes are single tasks. A norm waits for all of them,
        and all steps wait for it; those of one device run one at a time. If a stage trains (else there is no norm) they
        also follow the last pass of a frozen stage, since its micro-batch has yet to pass the stages that train.
        """
        reduce = self.plan.model.parameters.reduce
        step = terms.step if self._longest_step is None else self._longest_step
        return terms.reduce * (reduce.parts if reduce else 1) + (self.model.extra.norm or 0) + step

    def _work(self, device: DeviceId) -> Linear:
        return self.plan.microbatches * sum(self.model.terms[k].work for k in self._chain.positions(device))

    def _head_and_tail(self, device: DeviceId, paths: PathLengths) -> None:
        """Add rows of head and tail: the path to a device, its work, and the path from its last gradient to the end.

        A W may follow that gradient. Work of modules on the device counts only if it must lie between.
        """
        positions, m, terms = self._chain.positions(device), self.plan.microbatches, self.model.terms
        before, between, after = (own[device] for own in self.model.extra.by_position)
        # A head or tail of shared modules includes its own gathers and reductions; those of the first stage come in
        # addition.
        first, start = positions[0], 0 if self.model.extra.head else terms[0].gather
        gradients = m * sum(terms[k].busy for k in positions)
        busy = between + (gradients if self.plan.model.splittable else self._work(device))
        # The path back ends with the first stage's last backward; the reductions and the step that surely follow are
        # added.
        end = 0 if self.model.extra.tail else self._once(terms[0]) if first else self._after(device)
        self.model.cp.add(self.value >= start + paths.head[first] + busy + paths.tail[first] + end)
        if not self.span:
            own = between + after + self._work(device)
            self.model.cp.add(self.value >= start + paths.head[first] + own + self._after(device))
            self.model.cp.add(self.value >= before + busy + paths.tail[first])


def mean_load(plan: PlanProblem, choice: Choice) -> Ticks:
    """Return a lower bound in ticks: all work on the chains of `choice`, divided by the total speed of the devices.

    It is rounded up. For a period it is the work of one micro-batch, rounded down where several chains share a period.
    """
    each, stages = Fraction(0), len(choice.on(plan.cluster.devices).chains[0])
    for model in (piece.model for piece in plan.pieces_of(choice)):
        each += sum((layer.count * (layer.forward + layer.least_backward) for layer in model.layers), Fraction(0))
        each += stages * (model.forward_overhead + model.backward_overhead)
    steps = sum(
        (layer.count * layer.step for layer in plan.model.layers), stages * (plan.model.parameters.step or Fraction(0))
    )
    chains, extra = len(choice.on(plan.cluster.devices).chains), ExtraLoads.of(plan, choice)
    if plan.objective.repeats:
        per_microbatch = each / plan.tick / plan.cluster.speed
        return floor(per_microbatch) if chains > 1 else ceil(per_microbatch)
    own = sum(extra.load(device) / plan.cluster.slowness_of(device) for device in range(plan.cluster.devices))
    return ceil(((plan.microbatches * each + chains * steps) / plan.tick + own) / plan.cluster.speed)
