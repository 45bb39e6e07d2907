"""Mode values: a lower bound for each number of passes outside of blocks and of split backwards on one device."""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce
from typing import NamedTuple

import numpy as np

from pipesched.problem.problem import Objective
from pipesched.problem.quantities import DeviceId, MemorySteps, StageId, Ticks
from solver.bounds.analytic.critical_paths import Paths, chains_on
from solver.bounds.analytic.heads_and_tails import HeadsAndTails, heads_and_tails
from solver.bounds.analytic.idle_time.idle_gaps import forced_apart
from solver.bounds.analytic.idle_time.knapsack import most_value
from solver.bounds.analytic.modes.counts import ModeCounts, Numbers


class Argument(NamedTuple):
    """A lower bound by one argument about a device, in ticks.

    It is for each number of passes outside of blocks and of splits. The argument is about an instant: the end of the
    device's last forward, which is on the chain whose stages here are `last`; or, with `last` None, the end of its last
    gradient; or, if `after` and `tail` are 0, the end of its work. At that instant at most `after` ticks of the
    device's work are left; all other work runs before it, and not before tick `start`; and at least `tail` ticks follow
    it. `values` is the sum: `start`, the work less `after`, and `tail`.

    `values` has rows for the passes outside of blocks and columns for the split backwards; `start` and `after` may have
    a single row or column for all. `head` and `first_backward` are the earliest starts of the device's first pass and
    first backward, counted from the start of device `owner` (None: from time 0).
    """

    owner: DeviceId | None
    head: Ticks
    first_backward: Ticks
    start: Numbers
    after: Numbers
    tail: Ticks
    last: list[StageId] | None
    values: Numbers


class ModeValues:
    """Lower bounds on the objective (makespan or span) that one device proves by its passes' modes, in ticks.

    They are for each number of its passes outside of blocks and of split backwards; the device must run passes.
    `values` has a row for each number outside of blocks and a column for each number split, as `counts` has
    (`ModeCounts`). `chains` are the device's stages by chain; `apart` is True if memory cannot have all its activations
    at once, `mixed` by row if a backward surely starts before its last forward ends. Arguments are in groups: one
    argument of each group is valid, but it is not known which, so the least value of the group counts; over groups the
    greatest counts. Two cases are computed, of which the least counts: memory is full at the first backward, or has
    room for one more forward.
    """

    def __init__(self, paths: Paths, objective: Objective, device: DeviceId) -> None:
        self.view, self.paths, self.device = paths.view, paths, device
        self.chains = chains_on(self.view, device)
        self.counts = ModeCounts(self.view, [stage for chain in self.chains for stage in chain])
        self.capacity = self.view.room[device]
        self.apart = forced_apart(self.view, device, self.chains)
        # If all forwards run before the first backward, the idle time before that backward may be after all of them.
        self.mixed: Numbers = (self.counts.alone < self.counts.total) | self.apart
        self._weights = self._most_after_last_gradient()
        self._ends = list(heads_and_tails(paths, objective, [chain[0] for chain in self.chains]))
        self._cases = (True, False) if self._backwards_alone_make_room() else (False,)
        self.values = reduce(np.minimum, map(self._strongest, self._cases))

    def least(self) -> tuple[Ticks, int, int]:
        """Return the least of `values` over all possible counts, in ticks, with the indices of its row and column."""
        impossible = int(self.values.max()) + 1
        values = np.where(self.counts.possible, self.values, impossible)
        row, column = divmod(int(values.argmin()), len(self.counts.split))
        return int(self.values[row, column]), row, column

    def argument(self, row: int, column: int) -> Argument:
        """Return the argument that gives `values[row, column]`, for a certificate's text."""
        case = min(self._cases, key=lambda case: int(self._strongest(case)[row, column]))
        group = max(self._groups(case), key=lambda group: int(_weakest(group)[row, column]))
        return min(group, key=lambda one: int(one.values[row, column]))

    def _strongest(self, full: bool) -> Numbers:
        return reduce(np.maximum, map(_weakest, self._groups(full)))

    def _backwards_alone_make_room(self) -> bool:
        """True if no B frees memory and memory is limited: if full, a forward fits only after some backward with its W.

        Such a backward runs outside of blocks.
        """
        return self.capacity is not None and all(self.view.freed_by_backward(s) <= 0 for s in self.counts.stages)

    def _groups(self, full: bool) -> Iterator[list[Argument]]:
        """Yield the groups of arguments one by one, to save memory; of each group at least one argument is valid.

        `full`: assume that memory is full at the first backward, else that it has room for one more forward.
        """
        smallest = min(self.view.memory_in_flight[s] for s in self.counts.stages)
        least = 0 if full or len(self._cases) == 1 else smallest
        forwards = self._most_before_first_backward(None if self.capacity is None else self.capacity - least)
        waiting = [self._most_after_last_forward(chain, full) for chain in self.chains]
        for ends in self._ends:
            yield from self._by_ends(ends, forwards, waiting)

    def _by_ends(
        self, ends: HeadsAndTails, forwards: Numbers, after_forward: list[Numbers]
    ) -> Iterator[list[Argument]]:
        """Yield groups of arguments with the heads and tails `ends`.

        They are by the device's own end, its last gradient, and its last forward. `forwards` has by row the most ticks
        of forwards before the first backward; `after_forward` has for each chain the most work left when a forward of
        that chain is the device's last.
        """
        paths, work = self.paths, self.counts.work
        leads = [
            head + sum(paths.forward[s] for s in chain) + paths.away(chain)[0] + paths.round_trip[chain[-1]]
            for head, chain in zip(ends.heads, self.chains, strict=True)
        ]
        backward = min(leads)
        start = np.maximum(ends.least_head, backward - forwards)[:, None]
        before_last = np.where(self.mixed[:, None], start, ends.least_head)
        own = ends.owner in (None, self.device)

        def argument(since: Numbers, after: Numbers, tail: Ticks, last: list[StageId] | None = None) -> Argument:
            return Argument(
                ends.owner, ends.least_head, backward, since, after, tail, last, since + work - after + tail
            )

        if own:
            yield [argument(start, np.zeros((1, 1), dtype=np.int64), 0)]
        yield [argument(start, self._weights[None, :], min(ends.tails))]
        # Any chain's forward may be the last.
        yield [
            argument(before_last, waiting, self._last_tail(chain, back, own), chain)
            for chain, back, waiting in zip(self.chains, ends.tails, after_forward, strict=True)
        ]

    def _last_tail(self, chain: list[StageId], back: Ticks, own: bool) -> Ticks:
        """Return the least ticks from the end of the device's last forward, of `chain`, to the end that counts.

        That is `back` ticks after the micro-batch's gradient pass on the first stage of `chain` (its stages here) or,
        if `own`, the end of its backward on that stage, whichever is later.
        """
        paths, first, last = self.paths, chain[0], chain[-1]
        here = paths.round_trip[last] + paths.gradient[last] + paths.back[last] - paths.back[first]
        return max(here + back, here - paths.gradient[first] + paths.backward[first] if own else 0)

    def _most_before_first_backward(self, room: MemorySteps | None) -> Numbers:
        """Return by row the most ticks of forwards outside of blocks before the first backward.

        The memory `room` must admit them.
        """
        counts, view = self.counts, self.view
        ticks = {s: one.forward for s, one in counts.ticks.items()}
        most = most_value([(ticks[s], view.memory_in_flight[s], n) for s, n in counts.numbers.items()], room)
        if self.apart:
            most = min(most, sum(ticks[s] * n for s, n in counts.numbers.items()) - min(ticks.values()))
        return np.minimum(counts.largest(ticks)[counts.alone], most)

    def _most_after_last_gradient(self) -> Numbers:
        """Return the most ticks of weight passes after the device's last gradient pass.

        It is an array by number of split backwards. There may be no more than memory has room for.
        """
        counts = self.counts
        items = self._weight_items()
        if not items:
            return np.zeros(1, dtype=np.int64)
        weight = {s: one.w or 0 for s, one in counts.ticks.items()}
        return np.minimum(counts.largest(weight)[counts.split], most_value(items, self.capacity))

    def _most_after_last_forward(self, last: list[StageId], full: bool) -> Numbers:
        """Return by row and column the most ticks of backwards and weight passes after the device's last forward.

        That forward is of the chain with stages `last` here. If memory is full at the first backward (`full`), a
        backward outside of blocks has run before, unless all forwards had.
        """
        counts, view = self.counts, self.view
        whole = {s: one.whole for s, one in counts.ticks.items()}
        own = sum(whole[s] for s in last)
        room = None if self.capacity is None else self.capacity - sum(view.memory_in_flight[s] for s in last)
        others = [(whole[s], view.memory_in_flight[s], n - (s in last)) for s, n in counts.numbers.items()]
        weights = self._weight_items()
        outside = np.maximum(counts.alone - (self.mixed if full else 0), 0)
        by_row = counts.largest(whole)[outside][:, None]
        if not weights:
            return np.minimum(by_row, own + most_value(others, room))
        weight = {s: one.w or 0 for s, one in counts.ticks.items()}
        few = own + most_value(others, room) + counts.largest(weight)[counts.split]
        within_memory = np.minimum(few, own + most_value([*others, *weights], room))[None, :]
        more = {s: max(0, (one.b or 0) + (one.w or 0) - one.whole) for s, one in counts.ticks.items()}
        split = np.minimum(counts.split, self._most_at_once())
        waiting: Numbers = np.minimum(by_row, within_memory) + counts.largest(more)[split][None, :]
        return waiting

    def _most_at_once(self) -> int:
        """Return the most activations that can be in memory at once, whole or waiting for W.

        Each is of one micro-batch and stage.
        """
        view, counts = self.view, self.counts
        least = min(view.memory_in_flight[s] - max(0, view.freed_by_backward(s)) for s in counts.stages)
        return counts.total if self.capacity is None or least == 0 else min(counts.total, self.capacity // least)

    def _weight_items(self) -> list[tuple[Ticks, MemorySteps, int]]:
        """Return for each stage its weight passes: (ticks, memory that one occupies until it ends, number).

        Empty if not split.
        """
        view, counts = self.view, self.counts
        return [
            (one.w, view.memory_until_weight[s], counts.numbers[s])
            for s, one in counts.ticks.items()
            if one.w is not None
        ]


def _weakest(group: list[Argument]) -> Numbers:
    return reduce(np.minimum, [one.values for one in group])
