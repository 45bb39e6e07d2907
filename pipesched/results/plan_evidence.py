"""Evidence of a bound over all plans of one placement. Numbers are exact, times in the plan file's unit."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from pipesched.layers.partition import Partition
from pipesched.results.certificate import Certificate
from pipesched.results.evidence import UnknownForm


@dataclass(frozen=True)
class SolvedPartition:
    """A partition solved by itself: no order has a value less than `bound`; None if no order fits at all.

    The bound is in the file's unit. `certificate` is about the partition's problem, in ticks of it; None where the
    bound is the value of the published schedules that are allowed.
    """

    partition: Partition
    bound: Fraction | None
    certificate: Certificate | None = None


@dataclass(frozen=True)
class MeanLoad:
    """Evidence of a bound by the mean work of the devices, which needs no other data."""


@dataclass(frozen=True)
class TooManyStages:
    """Evidence that the model cannot be cut into this many stages, or not as the file asks; needs no other data."""


@dataclass(frozen=True)
class AllPartitions:
    """Evidence that all partitions were searched for one with a plan below the bound, except those in `solved`.

    The partitions in `solved` have bounds of their own.
    """

    solved: tuple[SolvedPartition, ...] = ()


@dataclass(frozen=True)
class OrderPaths:
    """Evidence that CP-SAT searched all partitions for one published order.

    Partitions are bounded by the longest paths of some of them. `tried` are the partitions whose paths bound every
    partition. `unfit` are partitions that do not fit the memory with this order.
    """

    order: str
    tried: tuple[Partition, ...]
    unfit: tuple[Partition, ...] = ()


@dataclass(frozen=True)
class AllOrders:
    """Evidence of a bound over the published orders that the plan file allows, with an entry for each that applies."""

    orders: tuple[OrderPaths, ...]


PlanEvidence = MeanLoad | TooManyStages | AllPartitions | AllOrders | UnknownForm
