"""Passes in rows of slots, moved to earlier gaps as far as what they need and the peaks of memory allow.

Memory counts activations of a chunk, each from its F to its W. Of a move only the levels between the two slots are
looked at, and where weight passes give way those up to the slot from which on they are where they were.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from pipesched.problem.passes import B, F, Pass
from pipesched.problem.problem import Problem

Row = list[Pass | None]  # what a device runs, by slot


def draw_together(
    problem: Problem, rows: Sequence[Row], moves: Callable[[tuple[int, int]], bool], weights_give_way: bool
) -> None:
    """Move passes to the first gap after what they need, in order of time, where no device's peak of memory rises.

    `moves` says of a slot and a device whether its pass may. The peak is that of all devices before. If weight passes
    give way, the rows are without them, and each is thought of in the first gap after its B, in the order of the Bs.
    """
    held = [_GivingWay(row) if weights_give_way else _AsTheyAre(row) for row in rows]
    cap = max(one.peak() for one in held)
    slot = {p: t for row in rows for t, p in enumerate(row) if p is not None}
    for t, d in sorted((t, d) for d, row in enumerate(rows) for t, p in enumerate(row) if p is not None):
        p = rows[d][t]
        if p is None or not moves((t, d)):
            continue
        earliest = 1 + max((slot[before] for before in _needs(problem, p)), default=-1)
        gap = held[d].moved(t, p, earliest, cap)
        if gap is not None:
            slot[p] = gap


def most_held(forwards: Sequence[int], backwards: Sequence[int], every: int, count: int) -> int:
    """The most activations held by passes that begin in these slots and come again `count` times, `every` slots later;
    each W in the first gap after its B.
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
    """What must come before a pass; the same pass of the micro-batch before is one of them."""
    yield from (before for before, _ in problem.network.predecessors(p, ()))
    if p.microbatch > 0:
        yield p._replace(microbatch=p.microbatch - 1)


class _AsTheyAre:
    """A row whose weight passes are where they are, with the level after each slot."""

    def __init__(self, row: Row) -> None:
        self._row = row
        changes = [0 if p is None or p.kind is B else 1 if p.kind is F else -1 for p in row]
        self._level = np.cumsum(np.array(changes, np.int64))

    def peak(self) -> int:
        return int(self._level.max(initial=0))

    def moved(self, t: int, p: Pass, earliest: int, cap: int) -> int | None:
        """The first gap from `earliest` on that the pass of slot t may move to, and has moved to; None without one."""
        if p.kind is F:
            full = np.flatnonzero(self._level[earliest:t] >= cap)
            earliest += int(full[-1]) + 1 if len(full) else 0
        gap = next((gap for gap in range(earliest, t) if self._row[gap] is None), None)
        if gap is not None:
            self._row[t], self._row[gap] = None, p
            if p.kind is not B:
                self._level[gap:t] += 1 if p.kind is F else -1
        return gap


class _GivingWay:
    """A row without weight passes, with what waits and what is held after each slot as they give way."""

    def __init__(self, row: Row) -> None:
        self._row = row
        self._states: list[tuple[int, int]] = [(0, 0)] * len(row)
        for t, state in enumerate(self._after(0)):
            self._states[t] = state

    def peak(self) -> int:
        return max((level for _, level in self._states), default=0)

    def moved(self, t: int, p: Pass, earliest: int, cap: int) -> int | None:
        """As above."""
        row = self._row
        for gap in (gap for gap in range(earliest, t) if row[gap] is None):
            row[t], row[gap] = None, p
            if self._follow(gap, t, cap):
                return gap
            row[t], row[gap] = p, None
        return None

    def _follow(self, gap: int, until: int, cap: int) -> bool:
        """Whether the peak stays below the cap; then what is held is as the row is now."""
        found = list[tuple[int, int]]()
        for at, state in enumerate(self._after(gap), gap):
            if state[1] > cap:
                return False
            if at >= until and state == self._states[at]:
                break
            found.append(state)
        self._states[gap : gap + len(found)] = found
        return True

    def _after(self, first: int) -> Iterator[tuple[int, int]]:
        """How many weight passes wait and how many activations are held after each slot from `first` on."""
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
