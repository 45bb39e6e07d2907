"""Partition whose worst device exceeds its capacity by the least: for one order, or for one micro-batch at a time."""

from __future__ import annotations

from formulations.partition.fixed_order import activation_levels
from formulations.partition.partition_model import PartitionModel
from formulations.partition.stage_terms import Linear
from pipesched.layers.plan_problem import Choice, PlanProblem
from pipesched.schedule.schedule import Schedule

_MOST = 2**32  # steps of memory


class LeastExcess:
    """CP-SAT model that minimises the memory needed above the capacity, on the device that needs most above it.

    All devices must have a capacity; the excess is negative where memory is left. `needs[d]` is a list of expressions
    of which the largest is the need of device d, in steps of the partition model (`partitions`) and without modules
    outside of the partition. Without `order` that is the need of one micro-batch after the other: the device has its
    layers and, before its first backward, the activations of one micro-batch on all its stages of a chain, with
    gathered parameters. Every plan needs at least that. With `order` it is the need of that order (activations and
    layers alone). Of partitions with equal excess the one that recomputes the fewest layers is best.
    """

    def __init__(self, plan: PlanProblem, choice: Choice, order: Schedule | None = None) -> None:
        placement = choice.on(plan.cluster.devices)
        length = len(placement.chains[0])
        self.partitions = PartitionModel(plan, choice)
        cp, terms = self.partitions.cp, self.partitions.terms
        excess = cp.new_int_var(-_MOST, _MOST, "excess")
        recomputed = [number for modes in self.partitions.recomputed for number in modes.values()]
        self.needs: list[list[Linear]] = []
        for device, room in enumerate(self.partitions.capacity):
            static = sum(terms[s % length].memory for s in placement.stages_of[device])
            levels = [static]
            for needed in () if order is None else activation_levels(self.partitions, order, device):
                levels.append(static + needed)
            for chain in placement.chains if order is None else ():
                for needed in self.partitions.needs([s % length for s in chain if placement.stage_device[s] == device]):
                    levels.append(static + needed)
            for level in levels:
                cp.add(excess >= level - room)
            self.needs.append(levels)
        # Of equals the one that recomputes least.
        most = 1 + len(plan.model.sequence)
        if recomputed:
            cp.minimize(excess * most + sum(recomputed))
        else:
            cp.minimize(excess)
