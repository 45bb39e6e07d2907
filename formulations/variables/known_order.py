"""Order of operations that precedences and memory alone fix: predecessors of every operation, as sets of bits."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from graphlib import CycleError, TopologicalSorter
from itertools import combinations

from formulations.jobs.quantities import ChoiceId
from formulations.variables.forced_by_memory import forced_by_memory
from formulations.variables.operations import Operation, Operations
from pipesched.deadline import SHORT, asking
from pipesched.problem.quantities import DeviceId


class KnownOrder:
    """The order of operations that follows from precedences and memory: `precedes(x, y)` if x always ends before y
    starts.

    "Always" means in every schedule in micro-batch order that runs both. `before[n]` are the predecessors of operation
    n, as bits of an integer. With `numbered`, nothing else is known of the order of micro-batches, and they are
    numbered in the order in which they begin. Orders are derived only from the memory of `devices` (None: all).
    """

    def __init__(
        self, operations: Operations, numbered: bool = False, devices: Collection[DeviceId] | None = None
    ) -> None:
        self.operations, self.numbered = operations, numbered
        self._names, self._number = list(operations.jobs_of), operations.number
        self._backward = {operations.choice(x): n for n, x in enumerate(self._names) if len(operations.jobs_of[x]) > 1}
        self._same_mode = self._operations_by_mode()
        # For each operation and each of its jobs: the groups of which one operation must end before it; and the
        # operations that must run if it does.
        self._into: list[list[list[Sequence[int]]]] = [[[] for _ in jobs] for jobs in operations.jobs_of.values()]
        self._if_it_runs: list[list[int]] = [[] for _ in self._names]
        self._read_precedences()
        self._further: list[list[int]] = [[] for _ in self._names]
        self._add([*operations.in_microbatch_order.items(), *(operations.interchangeable if numbered else ())])
        self.before = self._closed()
        self.forced: list[tuple[Operation, Operation]] = []  # by memory
        if operations.in_microbatch_order:
            every = enumerate(operations.jobs.pools)
            pools = [pool for pool, on in every if devices is None or set(on) <= set(devices)]
            self.forced = list(forced_by_memory(operations, self.before, pools))
            self._add(self.forced)
            with suppress(CycleError):  # where nothing fits at all
                self.before = self._closed()

    def precedes(self, x: Operation, y: Operation) -> bool:
        return bool(self.before[self._number[y]] >> self._number[x] & 1)

    def knows(self, x: Operation, y: Operation) -> bool:
        """True if the order of two operations is fixed, or they never both run."""
        return self.precedes(x, y) or self.precedes(y, x) or self.operations.exclude(x, y)

    def just_before(self, x: Operation, among: Sequence[Operation]) -> list[Operation]:
        """Return the operations of `among` known to run before x, without those that others imply transitively."""
        left, found = self.before[self._number[x]] & self.bits(among), list[Operation]()
        for y in sorted((y for y in among if left >> self._number[y] & 1), key=self._count, reverse=True):
            if left >> self._number[y] & 1:
                found.append(y)
                if self.operations.always(y):
                    left &= ~self.before[self._number[y]]
        return found

    def bits(self, operations: Iterable[Operation]) -> int:
        """Return a set of operations as an integer in which bit n stands for operation number n."""
        found = 0
        for x in operations:
            found |= 1 << self._number[x]
        return found

    def open_pairs(self, devices: Collection[DeviceId] | None = None) -> int:
        """Return the number of pairs of operations of one resource whose order is not known: each needs an order
        literal.

        Only resources of `devices` count (None: all), and no pairs of operations that never both run.
        """
        found = 0
        for where, here in self.operations.on.items():
            if devices is None or where.device in devices:
                bits = self.bits(here)
                known = sum((self.before[self._number[x]] & bits).bit_count() for x in here)
                found += len(here) * (len(here) - 1) // 2 - known - self._never_both(here)
        return found

    def _never_both(self, here: Sequence[Operation]) -> int:
        """Return the number of pairs in `here`, of unknown order, whose two operations never both run."""
        ops, by_choice = self.operations, dict[int | None, list[Operation]]()
        for x in here:
            if not ops.always(x):
                by_choice.setdefault(ops.choice(x), []).append(x)
        pairs = (pair for each in by_choice.values() for pair in combinations(each, 2) if ops.exclude(*pair))
        return sum(not (self.precedes(x, y) or self.precedes(y, x)) for x, y in pairs)

    def _count(self, x: Operation) -> int:
        return self.before[self._number[x]].bit_count()

    def _add(self, pairs: Iterable[tuple[Operation, Operation]]) -> None:
        for before, after in pairs:
            self._further[self._number[after]].append(self._number[before])

    def _operations_by_mode(self) -> dict[tuple[ChoiceId | None, int], int]:
        """Return the operations that run with each (choice, option) as bits.

        (None, 0) for those that run in every mode.
        """
        found: dict[tuple[int | None, int], int] = {}
        for n, x in enumerate(self._names):
            mode = self.operations.mode(x)
            found[mode] = found.get(mode, 0) | 1 << n
        return found

    def _read_precedences(self) -> None:
        ops = self.operations
        for arc in ops.jobs.precedences:
            after = ops.of[arc.after]
            group = list(dict.fromkeys(self._number[ops.of[n]] for n in arc.alternatives))
            if arc.optional:
                self._if_it_runs[self._number[after]] += group
            else:
                self._into[self._number[after]][ops.jobs_of[after].index(arc.after)].append(group)

    def _closed(self) -> list[int]:
        """Return for each operation, by number, all its known predecessors as bits (transitive closure)."""
        ops, found = self.operations, [0] * len(self._names)
        direct = [
            {one for groups in self._into[n] for group in groups for one in group}.union(also, further)
            for n, (also, further) in enumerate(zip(self._if_it_runs, self._further, strict=True))
        ]
        for n in asking(TopologicalSorter(dict(enumerate(direct))).static_order(), SHORT):
            x = self._names[n]
            if ops.is_empty_if_fused(x):
                backward = self._backward[ops.choice(x)]
                found[n] = found[backward] | 1 << backward
            else:
                common = -1  # true for each of its jobs
                for groups in self._into[n]:
                    here = 0
                    for group in groups:
                        here |= self._one_of(group, found)
                    common &= here
                found[n] = common
            for one in self._if_it_runs[n]:
                found[n] |= self._with(one, found)
            for one in self._further[n]:
                found[n] |= found[one] | 1 << one
        return found

    def _one_of(self, group: Sequence[int], found: Sequence[int]) -> int:
        """Return as bits the predecessors that follow from `group`, one of whose operations must end before another.

        These are the predecessors common to all of them, and the operations that run with one of them and precede it.
        `found` has the predecessors of each operation, by number, as bits.
        """
        common, own = found[group[0]] | 1 << group[0], 0
        for one in group:
            common &= found[one] | 1 << one
            own |= self._with(one, found)
        return common | own

    def _with(self, n: int, found: Sequence[int]) -> int:
        """Return operation n and its predecessors as bits, limited to those that run if and only if it does.

        `found` has the predecessors of each operation, by number, as bits.
        """
        ops, x, before = self.operations, self._names[n], found[n] | 1 << n
        if ops.choice(x) is None:
            return before
        return 0 if ops.always(x) else before & self._same_mode[ops.mode(x)]
