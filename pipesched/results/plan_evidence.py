"""Evidence of a bound over all plans of one placement. All numbers are exact, times in the plan file's unit."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from pipesched.layers.partition import Partition
from pipesched.results.certificate import Certificate
from pipesched.results.evidence import UnknownForm


@dataclass(frozen=True)
class SolvedPartition:
    """A partition whose orders were searched by themselves: none is below `bound`; None: no order fits at all.

    `certificate` is of the problem that the partition makes, its value in ticks of that problem; None where the bound
    is the value of the published schedules that are allowed.
    """

    partition: Partition
    bound: Fraction | None
    certificate: Certificate | None = None


@dataclass(frozen=True)
class MeanLoad:
    """All that the model computes, spread over the devices; nothing else is needed."""


@dataclass(frozen=True)
class TooManyStages:
    """The model cannot be cut into as many stages, or not as the file asks; nothing else is needed."""


@dataclass(frozen=True)
class AllPartitions:
    """All partitions were searched for one that a lower bound allows; those of `solved` have bounds of their own."""

    solved: tuple[SolvedPartition, ...] = ()


@dataclass(frozen=True)
class OrderPaths:
    """For one published order CP-SAT searched all partitions to its end, by the longest paths of some of them.

    `tried` are those partitions; their paths bound every partition. `unfit` do not fit the memory with this order.
    """

    order: str
    tried: tuple[Partition, ...]
    unfit: tuple[Partition, ...] = ()


@dataclass(frozen=True)
class AllOrders:
    """Each published order that is allowed has evidence of its own."""

    orders: tuple[OrderPaths, ...]


PlanEvidence = MeanLoad | TooManyStages | AllPartitions | AllOrders | UnknownForm
