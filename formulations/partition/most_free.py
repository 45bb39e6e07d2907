"""The partition that leaves more free memory than a given amount, where micro-batches run one after the other."""

from __future__ import annotations

from fractions import Fraction

from formulations.partition.partition_model import PartitionModel
from formulations.partition.stage_terms import Linear
from pipesched.layers.free_memory import holds_cache
from pipesched.layers.plan_problem import Choice, Leaves, PlanProblem


class MostFreeModel:
    """CP-SAT model of a partition (`partitions`) that leaves each device more than `amount` of free memory.

    `amount` is in the file's memory unit, per device, or per layer with a cache, as the plan problem says. The model
    minimises the largest loss of a device: what `amount` asks of it, less what it has free, in steps of `unit`, a
    fraction of the file's unit. A partition with a loss below 0 leaves more than `amount` everywhere; if none has, no
    partition does (Dinkelbach, Management Science 13, 1967). Micro-batches run one after the other, which needs the
    least memory of all orders. All devices must have a capacity.
    """

    def __init__(self, plan: PlanProblem, choice: Choice, amount: Fraction) -> None:
        placement = choice.on(plan.cluster.devices)
        length = len(placement.chains[0])
        self.partitions = PartitionModel(plan, choice)
        cp, terms, ratio = self.partitions.cp, self.partitions.terms, amount / self.partitions.step
        parts, layers = ratio.denominator, len(plan.model.sequence)
        self.unit = self.partitions.step / parts
        most = parts * max(self.partitions.capacity)
        loss = cp.new_int_var(-most, 2 * layers * ratio.numerator + most, "loss")
        per_layer = plan.leaves is Leaves.PER_LAYER
        cached = {run.name for run in plan.model.layers if holds_cache(run)}
        for device, room in enumerate(self.partitions.capacity):
            stages = placement.stages_of[device]
            static = sum(terms[s % length].memory for s in stages)
            share: Linear = sum(self.partitions.layers_of(s % length, cached) for s in stages) if per_layer else 1
            counts = cp.new_bool_var(f"counts{device}")
            if per_layer:
                cp.add(share >= 1).only_enforce_if(counts)
                cp.add(share == 0).only_enforce_if(~counts)
            else:
                cp.add(counts == 1)
            for chain in placement.chains:
                for needed in self.partitions.needs([s % length for s in chain if placement.stage_device[s] == device]):
                    cp.add(static + needed <= room)
                    left = parts * (room - static - needed)
                    cp.add(loss >= ratio.numerator * share - left).only_enforce_if(counts)
        cp.minimize(loss)
