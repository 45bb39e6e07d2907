"""Order of operations that precedences and memory alone fix: predecessors of every operation, as sets of bits."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from graphlib import CycleError, TopologicalSorter

from formulations.jobs.quantities import ChoiceId
from formulations.variables.forced_by_memory import forced_by_memory
from formulations.variables.operations import Operation, Operations
from pipesched.deadline import SHORT, asking
from pipesched.problem.quantities import DeviceId


class KnownOrder:
    """The order of operations that follows from precedences and memory.

    `precedes(x, y)` is true if x always ends before y starts. "Always" means in every schedule in micro-batch order
    that runs both. `before[n]` are the predecessors of operation n, as bits of an integer. `numbered`: identical
    micro-batches that may differ in their modes, so that no other order of them is known, are taken to be numbered in
    the order in which they begin. `forced` are the orders that follow from memory, as pairs (earlier, later). Orders
    are derived only from the memory of `devices` (None: all).
    """

    def __init__(
        self, operations: Operations, numbered: bool = False, devices: Collection[DeviceId] | None = None
    ) -> None:
        self.operations, self.numbered = operations, numbered
        self._names, self._number = list(operations.jobs_of), operations.number
        self._backward_of = {self._number[w]: self._number[b] for w, b in operations.backward_of.items()}
        self._only_with, self._never_with = self._operations_by_mode()
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

    def in_order(
        self, earlier: Sequence[Operation], later: Sequence[Operation]
    ) -> bool | list[tuple[Operation, Operation]]:
        """Return True if all of `earlier` are known to end before any of `later` starts, False if they cannot.

        They cannot if some two are the same, run in the opposite order, or never both run. Else the pairs (one of
        `earlier`, one of `later`) whose order is open are returned.
        """
        pairs = [(x, y) for x in earlier for y in later if not self.precedes(x, y)]
        never = (x == y or self.precedes(y, x) or self._exclude(x, y) for x, y in pairs)
        return False if any(never) else pairs or True

    def _exclude(self, x: Operation, y: Operation) -> bool:
        """True if two operations never both run."""
        return bool(self._never_with[self._number[x]] >> self._number[y] & 1)

    def knows(self, x: Operation, y: Operation) -> bool:
        """True if the order of two operations is fixed, or they never both run."""
        n, m = self._number[x], self._number[y]
        return bool((self.before[m] | self._never_with[m]) >> n & 1 or self.before[n] >> m & 1)

    def fixed(self, here: Sequence[Operation]) -> dict[tuple[Operation, Operation], bool]:
        """Return for pairs of `here`, in both orders, True if the first always ends before the second starts.

        Pairs whose order is open are left out. Of two that never both run neither ends before the other.
        """
        found, before, never = dict[tuple[Operation, Operation], bool](), self.before, self._never_with
        numbers = [(x, self._number[x]) for x in here]
        for at, (x, n) in asking(enumerate(numbers, 1)):
            for y, m in numbers[at:]:
                first, last = bool(before[m] >> n & 1), bool(before[n] >> m & 1)
                if first or last or never[n] >> m & 1:
                    found[x, y], found[y, x] = first, last
        return found

    def just_before(self, x: Operation, among: Sequence[Operation]) -> list[Operation]:
        """Return the operations of `among` known to run before x, without those that others imply transitively.

        Those with the most known predecessors are first.
        """
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
        """Return the number of pairs of operations of one resource whose order is not known.

        Each needs an order literal. Only resources of `devices` count (None: all), and no pairs of operations that
        never both run.
        """
        found = 0
        for where, here in self.operations.on.items():
            if devices is None or where.device in devices:
                bits, numbers = self.bits(here), [self._number[x] for x in here]
                known = sum((self.before[n] & bits).bit_count() for n in numbers)
                never = sum((self._never_with[n] & bits).bit_count() for n in numbers) // 2
                both = sum((self._never_with[n] & self.before[n] & bits).bit_count() for n in numbers)
                found += len(here) * (len(here) - 1) // 2 - known - never + both
        return found

    def _count(self, x: Operation) -> int:
        return self.before[self._number[x]].bit_count()

    def _add(self, pairs: Iterable[tuple[Operation, Operation]]) -> None:
        for before, after in pairs:
            self._further[self._number[after]].append(self._number[before])

    def _operations_by_mode(self) -> tuple[list[int], list[int]]:
        """Return by number of operation, as bits, the predecessors that it passes on, and what never runs with it.

        It passes on the predecessors that precede whatever it precedes. These are a mask: -1, for all of them, if the
        operation always runs at full length; 0 for the B and W of a backward that may be fused, as another job may take
        the place of theirs; the operations of the same mode if it runs in one mode only.
        """
        mode, backward_of = self.operations.mode, self.operations.backward_of
        of_mode, of_choice = dict[tuple[ChoiceId, int], int](), dict[ChoiceId, int]()
        for x, own in mode.items():
            of_mode[own] = of_mode.get(own, 0) | 1 << self._number[x]
            of_choice[own[0]] = of_choice.get(own[0], 0) | 1 << self._number[x]
        fused = {*backward_of, *backward_of.values()}
        only = [of_mode[mode[x]] if x in mode else 0 if x in fused else -1 for x in self._names]
        return only, [of_choice[mode[x][0]] & ~of_mode[mode[x]] if x in mode else 0 for x in self._names]

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
        found = [0] * len(self._names)
        direct = [
            {one for groups in self._into[n] for group in groups for one in group}.union(also, further)
            for n, (also, further) in enumerate(zip(self._if_it_runs, self._further, strict=True))
        ]
        for n in asking(TopologicalSorter(dict(enumerate(direct))).static_order(), SHORT):
            backward = self._backward_of.get(n)
            if backward is not None:
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
        """Return as bits the predecessors of an operation before which one of the operations `group` must end.

        These are the predecessors common to the whole group, and the operations that run with one of the group and
        precede it. `found` has the predecessors of each operation, by number, as bits.
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
        return (found[n] | 1 << n) & self._only_with[n]
