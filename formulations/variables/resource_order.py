"""Order literals: for every two operations of a resource, a Boolean `x runs before y`, fixed or decided by CP-SAT."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import combinations
from typing import cast

from ortools.sat.python import cp_model

from formulations.variables.known_order import KnownOrder
from formulations.variables.literals import Literal, Truth
from formulations.variables.operations import Operation
from pipesched.deadline import SHORT, asking

# A forward and a backward, both of one device.
Pair = tuple[Operation, Operation]


class ResourceOrder:
    """The order of one resource's operations as literals; one has no meaning unless both of its operations run.

    `before(x, y)` exists for every two: True or False where `known` fixes it, else a new literal of `cp`. `together`
    has a literal where a forward and a full backward may run as one block. `blocks` maps such pairs, in either order,
    to (forward, backward).
    """

    def __init__(
        self, cp: cp_model.CpModel, known: KnownOrder, operations: Sequence[Operation], blocks: Mapping[Pair, Pair]
    ) -> None:
        self.operations, self._known = operations, known
        self._truth: dict[Pair, Truth] = {**known.fixed(operations)}
        self.together: dict[Pair, cp_model.IntVar] = {}
        for y, x in asking(combinations(operations, 2), SHORT):
            if (x, y) in self._truth:
                continue
            before = cp.new_bool_var(f"{_name(x)}<{_name(y)}")
            self._truth[x, y], self._truth[y, x] = before, cast(Literal, before.negated())
            if (x, y) in blocks:
                after, block = (
                    cp.new_bool_var(f"{_name(a)}{sign}{_name(b)}") for a, sign, b in ((y, "<", x), (x, "&", y))
                )
                self._truth[y, x], self.together[blocks[x, y]] = after, block
                cp.add_exactly_one(before, after, block)

    def before(self, x: Operation, y: Operation) -> Truth:
        """Return True, False or a literal that is true if x ends before y starts; False if they are the same."""
        return x != y and self._truth[x, y]

    def undecided(self) -> Iterator[tuple[Operation, Operation, Literal]]:
        """Yield (x, y, literal) for every ordered pair that CP-SAT decides.

        If the literal is true, x ends before y starts.
        """
        for (x, y), truth in asking(self._truth.items(), SHORT):
            if not isinstance(truth, bool):
                yield x, y, truth

    @cached_property
    def just_before(self) -> Mapping[Operation, Sequence[Operation]]:
        """For each operation, those of this resource known to run before it, without those implied transitively."""
        return {x: self._known.just_before(x, self.operations) for x in asking(self.operations)}


def _name(x: Operation) -> str:
    return f"{x.role.value}{x.stage}.{x.microbatch}" + (f"/{x.part}" if x.part else "")
