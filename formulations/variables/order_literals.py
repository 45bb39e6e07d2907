"""Order literals: for two operations of a device, a Boolean `x runs before y`, fixed or decided by CP-SAT."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from itertools import combinations
from typing import cast

from ortools.sat.python import cp_model

from formulations.variables.operations import Operation, StaticOrder
from formulations.variables.overlap_literals import Pair, blocks_gain
from pipesched.problem.passes import PassKind
from pipesched.problem.problem import Problem

# An order that CP-SAT decides, and one that is known or not.
Literal = cp_model.IntVar | cp_model.NotBooleanVariable
Truth = bool | Literal
# The operations of one role on one stage, one of each micro-batch.
Line = tuple[PassKind, int]


# Beyond so many pairs of operations on a device nobody counts those that are known.
_MOST_PAIRS = 300_000


def negation(truth: Truth) -> Truth:
    """The opposite of a truth."""
    return not truth if isinstance(truth, bool) else cast(Literal, truth.negated())


def literal_count(problem: Problem, devices: Iterable[int]) -> int:
    """How many order literals these devices would need, without making them or looking at every pair.

    Whether x precedes y depends on their roles, their stages and how many micro-batches lie between, and holds for all
    greater distances once it holds for one: so for each two lines of operations the least such distance tells all.
    """
    order = StaticOrder(problem)
    if problem.queues:
        return sum(_undecided(order, device) for device in devices)
    chain = problem.placement.chain_index
    total = 0
    for device in devices:
        lines = [(role, stage) for stage in problem.placement.stages_of[device] for role in order.roles]
        for at, one in enumerate(lines):
            for other in lines[: at + 1]:
                held, count = problem.microbatches_of[one[1]], len(problem.microbatches_of[other[1]])
                if one == other:
                    total += 0 if order.in_microbatch_order(*one) else len(held) * (len(held) - 1) // 2
                elif chain[one[1]] != chain[other[1]]:
                    total += len(held) * count
                else:
                    total += (
                        len(held) * count - _preceding(order, one, other, held) - _preceding(order, other, one, held)
                    )
    return total


def _undecided(order: StaticOrder, device: int) -> int:
    """The pairs of a device, one by one; all of them where that would take long."""
    operations = order.operations(device)
    pairs = len(operations) * (len(operations) - 1) // 2
    if pairs > _MOST_PAIRS:
        return pairs
    return sum(not (order.precedes(x, y) or order.precedes(y, x)) for x, y in combinations(operations, 2))


def _preceding(order: StaticOrder, one: Line, other: Line, microbatches: range) -> int:
    """For how many pairs of micro-batches the operation of one line precedes that of another on the same chain."""

    x, first, count = Operation(*one, microbatches.start), microbatches.start, len(microbatches)

    def precedes(distance: int) -> bool:
        return order.precedes(x, Operation(*other, first + distance))

    if not count or not precedes(count - 1):
        return 0
    farther = count - (0 if precedes(0) else bisect_left(range(count), True, key=precedes))
    return farther * (farther + 1) // 2


class DeviceOrder:
    """The order of one device's operations.

    `before(x, y)` for every two; `together(x, y)` where a forward and a full backward may run as one block.
    """

    def __init__(self, model: cp_model.CpModel, order: StaticOrder, device: int) -> None:
        self.operations = order.operations(device)
        self.static = order
        self._truth: dict[tuple[Operation, Operation], Truth] = {}
        self.together: dict[Pair, cp_model.IntVar] = {}
        for at, x in enumerate(self.operations):
            for y in self.operations[:at]:
                self._decide(model, x, y)

    def _decide(self, model: cp_model.CpModel, x: Operation, y: Operation) -> None:
        known = self.static.precedes(x, y)
        if known or self.static.precedes(y, x):
            self._truth[x, y], self._truth[y, x] = known, not known
            return
        ahead = model.new_bool_var(f"{_name(x)}<{_name(y)}")
        self._truth[x, y] = ahead
        pair = blocks_gain(self.static, x, y)
        if pair is None:
            self._truth[y, x] = negation(ahead)
            return
        behind, block = model.new_bool_var(f"{_name(y)}<{_name(x)}"), model.new_bool_var(f"{_name(x)}&{_name(y)}")
        self._truth[y, x] = behind
        self.together[pair] = block
        model.add_exactly_one(ahead, behind, block)

    def before(self, x: Operation, y: Operation) -> Truth:
        return self._truth[x, y]

    def undecided(self) -> Iterator[tuple[Operation, Operation, Literal]]:
        """(x, y, literal) for every ordered pair that CP-SAT decides."""
        for (x, y), truth in self._truth.items():
            if not isinstance(truth, bool):
                yield x, y, truth


def _name(x: Operation) -> str:
    return f"{x.role.value}{x.stage}.{x.microbatch}"
