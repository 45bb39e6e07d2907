"""Compaction of passes in rows of slots: passes move to earlier gaps if precedences and the memory peak allow.

Memory counts activations of a chunk, each from its F to its W. A move changes the levels only between its two slots;
where weight passes are displaced, the levels are computed again up to the slot from which they are unchanged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

import numpy as np

from pipesched.deadline import SHORT, asking
from pipesched.problem.passes import B, F, Pass
from pipesched.problem.problem import Problem
from pipesched.problem.quantities import DeviceId

Row = list[Pass | None]  # what a device runs, by slot
# A slot of time, from 0, in which a device runs one pass or none; or a number of them.
TimeSlot: TypeAlias = int


def draw_together(
    problem: Problem, rows: Sequence[Row], moves: Callable[[tuple[TimeSlot, DeviceId]], bool], displace_weights: bool
) -> None:
    """Move passes, in order of time, to the first gap after their predecessors, if the memory peak does not rise.

    `rows` has the pass in each slot of each device (None for a gap), and is changed in place. `moves((slot, device))`
    is True if the pass there may move. The peak is the largest over the devices before the moves. With
    `displace_weights` the rows have no weight passes, and each W takes the first gap after its B, in the order of the
    Bs. A pass also stays after the same pass of the previous micro-batch, and moves to earlier slots only.
    """
    devices = [_DisplacedWeights(row) if displace_weights else _AsTheyAre(row) for row in asking(rows)]
    cap = max(one.peak() for one in asking(devices))
    taken = [(t, d) for d, row in enumerate(asking(rows)) for t, p in enumerate(row) if p is not None]
    slot = {rows[d][t]: t for t, d in asking(taken, SHORT)}
    for t, d in asking(sorted(taken)):
        p = rows[d][t]
        if p is None or not moves((t, d)):
            continue
        earliest = 1 + max((slot[before] for before in _needs(problem, p)), default=-1)
        gap = devices[d].moved(t, p, earliest, cap)
        if gap is not None:
            slot[p] = gap


def most_live(forwards: Sequence[TimeSlot], backwards: Sequence[TimeSlot], every: TimeSlot, count: int) -> int:
    """Return the most activations in memory at once on a device whose pattern of slots repeats.

    `forwards` and `backwards` are the slots of the passes of one period, which has `every` slots and repeats `count`
    times. Each W takes the first gap after its B.
    """
    row = [0] * (max(*forwards, *backwards) + every * count)
    for kind, slots in ((1, forwards), (-1, backwards)):
        for first in slots:
            row[first : first + every * count : every] = [kind] * count
    waiting = level = peak = 0
    for kind in row:
        if kind > 0:
            level += 1
            peak = max(peak, level)
        elif kind < 0:
            waiting += 1
        elif waiting:
            waiting, level = waiting - 1, level - 1
    return peak


def _needs(problem: Problem, p: Pass) -> Iterator[Pass]:
    """Yield the predecessors of a pass and, in addition, the same pass of the previous micro-batch."""
    yield from (before for before, _ in problem.network.predecessors(p, ()))
    if p.microbatch > 0:
        yield p._replace(microbatch=p.microbatch - 1)


class _AsTheyAre:
    """A device's row of passes by slot, to move its passes to earlier gaps; a move displaces no other pass.

    `peak` returns the most live activations after any slot, `moved` moves one pass if no more than a given number stay
    live.
    """

    def __init__(self, row: Row) -> None:
        self._row = row
        changes = [0 if p is None or p.kind is B else 1 if p.kind is F else -1 for p in row]
        self._level = np.cumsum(np.array(changes, np.int64))

    def peak(self) -> int:
        return int(self._level.max(initial=0))

    def moved(self, t: TimeSlot, p: Pass, earliest: TimeSlot, cap: int) -> TimeSlot | None:
        """Move pass `p` from slot `t` to the first gap in slots `earliest` to `t - 1` that `cap` admits.

        An F takes the first gap from which on at most `cap` activations are live in every slot before `t`, itself
        counted; other passes, which add none, take the first gap. Row and levels change in place. Returns the new slot;
        None, and nothing changes, if there is none.
        """
        if p.kind is F:
            full = np.flatnonzero(self._level[earliest:t] >= cap)
            earliest += int(full[-1]) + 1 if len(full) else 0
        gap = next((gap for gap in range(earliest, t) if self._row[gap] is None), None)
        if gap is not None:
            self._row[t], self._row[gap] = None, p
            if p.kind is not B:
                self._level[gap:t] += 1 if p.kind is F else -1
        return gap


class _DisplacedWeights:
    """A device's row of passes by slot, without weight passes.

    Each weight pass is taken to run in the first gap after its B. `peak` returns the most live activations after any
    slot, `moved` moves one pass if no more than a given number stay live. By slot it has the numbers of waiting weight
    passes and of live activations after it.
    """

    def __init__(self, row: Row) -> None:
        self._row = row
        self._states: list[tuple[int, int]] = [(0, 0)] * len(row)
        for t, state in enumerate(self._after(0)):
            self._states[t] = state

    def peak(self) -> int:
        return max((level for _, level in self._states), default=0)

    def moved(self, t: TimeSlot, p: Pass, earliest: TimeSlot, cap: int) -> TimeSlot | None:
        """Move pass `p`, an F or B, from slot `t` to the first gap in slots `earliest` to `t - 1` that `cap` admits.

        Weight passes, which the row leaves out, then take the first gaps after their Bs again. A gap is admitted if
        at most `cap` activations are live in every slot after that. Returns the new slot; None, and the row
        unchanged, if there is none.
        """
        row = self._row
        for gap in (gap for gap in asking(range(earliest, t), SHORT) if row[gap] is None):
            row[t], row[gap] = None, p
            if self._follow(gap, t, cap):
                return gap
            row[t], row[gap] = p, None
        return None

    def _follow(self, gap: TimeSlot, until: TimeSlot, cap: int) -> bool:
        """Recompute waiting weight passes and live activations after a move from slot `until` to the earlier `gap`.

        Their numbers are those after each slot from `gap` on, as far as they change. Returns False, and leaves all
        numbers as they were, if more than `cap` activations are live after some slot.
        """
        found = list[tuple[int, int]]()
        for at, state in enumerate(self._after(gap), gap):
            if state[1] > cap:
                return False
            if at >= until and state == self._states[at]:
                break
            found.append(state)
        self._states[gap : gap + len(found)] = found
        return True

    def _after(self, first: TimeSlot) -> Iterator[tuple[int, int]]:
        """Yield (waiting weight passes, live activations) after each slot from `first` on."""
        waiting, level = self._states[first - 1] if first else (0, 0)
        for t in range(first, len(self._row)):
            p = self._row[t]
            if p is None:
                if waiting:
                    waiting, level = waiting - 1, level - 1
            elif p.kind is B:
                waiting += 1
            elif p.kind is F:
                level += 1
            yield waiting, level
