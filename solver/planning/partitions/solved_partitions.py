"""Partitions of one placement that a search of their own scheduled, with the bound proved for each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

from pipesched.layers.partition import Partition
from pipesched.layers.plan_problem import PlanProblem
from pipesched.problem.attainable_spans import simplest
from pipesched.results.plan_evidence import SolvedPartition
from pipesched.results.solution import Solution, Status


class SolvedPartitions:
    """The partitions of a placement that were scheduled, or excluded from the master problem, with proved bounds.

    `left_out` are the excluded partitions. `values` has, in ticks of the plan problem, a number for each of them that
    has a plan: the value of its best plan, or a lower bound on it. `open` maps the excluded partitions whose best
    schedule is not known to their lower bounds in ticks.
    """

    def __init__(self, plan: PlanProblem) -> None:
        self._plan = plan
        self._known: dict[Partition, SolvedPartition] = {}
        self.values: list[Fraction] = []
        self.left_out: set[Partition] = set()
        self.open: dict[Partition, Fraction] = {}

    @property
    def known(self) -> tuple[SolvedPartition, ...]:
        """All solved partitions, as evidence for a bound over all partitions."""
        return tuple(self._known.values())

    def add(self, partition: Partition, solution: Solution) -> Fraction:
        """Record the result of a search over all orders for `partition`.

        Return its lower bound in ticks of the plan problem. It counts as left out of the master problem if its optimum
        is known or it has no schedule.
        """
        tick = self._plan.tick
        lower = Fraction(solution.lower_bound_ticks) * solution.problem.tick / tick
        if solution.status in (Status.OPTIMAL, Status.INFEASIBLE):
            self.left_out.add(partition)
            self.values += [lower] if solution.status is Status.OPTIMAL else []
        certificate, before = solution.certificate, self._known.get(partition)
        if solution.status is Status.INFEASIBLE:
            self._known[partition] = SolvedPartition(partition, None, certificate)
        elif certificate is not None and (before is None or before.bound is None or lower * tick > before.bound):
            ticks = simplest(Fraction(certificate.value_ticks) * solution.problem.tick / tick)
            self._known[partition] = SolvedPartition(partition, lower * tick, replace(certificate, value_ticks=ticks))
        return lower

    def leave_out(self, partition: Partition, lower: Fraction) -> None:
        """Leave a partition out of the master problem with the bound `lower` (ticks), unless it is left out already."""
        if partition not in self.left_out:
            self.left_out.add(partition)
            self.values.append(lower)
            self.open[partition] = lower

    def add_published(self, partition: Partition, values: Sequence[Fraction]) -> None:
        """Record as bound of a partition the least of `values`: those of all allowed published schedules that fit it.

        Values are in the file's unit; None is recorded if there are none. The partition then counts as left out of the
        master problem.
        """
        least = min(values, default=None)
        self._known[partition] = SolvedPartition(partition, least)
        self.values += [] if least is None else [least / self._plan.tick]
        self.left_out.add(partition)
