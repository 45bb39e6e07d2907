"""Order literals: for two operations of a device, the truth of `x runs before y`, known or for CP-SAT to decide."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import cast

from ortools.sat.python import cp_model

from formulations.operations import Operation, StaticOrder
from pipesched.passes import B, F
from pipesched.problem import Problem

# An order that CP-SAT decides, and one that is known or not.
Literal = cp_model.IntVar | cp_model.NotBooleanVariable
Truth = bool | Literal


def negation(truth: Truth) -> Truth:
    """The opposite of a truth."""
    return not truth if isinstance(truth, bool) else cast(Literal, truth.negated())


def literal_count(problem: Problem, devices: Iterable[int]) -> int:
    """How many order literals these devices would need, without making them."""
    order = StaticOrder(problem)
    total = 0
    for device in devices:
        operations = order.operations(device)
        for at, x in enumerate(operations):
            total += sum(not (order.precedes(x, y) or order.precedes(y, x)) for y in operations[:at])
    return total


class DeviceOrder:
    """The order of one device's operations.

    `before(x, y)` for every two; `together(x, y)` where a forward and a full backward may run as one block.
    """

    def __init__(self, model: cp_model.CpModel, order: StaticOrder, device: int) -> None:
        self.operations = order.operations(device)
        self.static = order
        self._truth: dict[tuple[Operation, Operation], Truth] = {}
        self.together: dict[tuple[Operation, Operation], cp_model.IntVar] = {}
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
        pair = blocks_gain(self.static.problem, x, y)
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


def blocks_gain(problem: Problem, x: Operation, y: Operation) -> tuple[Operation, Operation] | None:
    """(forward, backward) if x and y may run as an overlapped block that is shorter than one after the other."""
    forward, backward = (x, y) if x.role is F else (y, x)
    if forward.role is not F or backward.role is not B or problem.costs.overlapped is None:
        return None
    block = problem.costs.overlapped[forward.stage]
    alone = problem.costs.forward[forward.stage] + problem.costs.fused[backward.stage]
    return (forward, backward) if block < alone else None


def _name(x: Operation) -> str:
    return f"{x.role.value}{x.stage}.{x.microbatch}"
