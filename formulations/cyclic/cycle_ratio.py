"""Maximum cycle ratio of precedences that repeat: the least period for which their cycles are satisfied."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

from pipesched.problem.quantities import Ticks


class Arc(NamedTuple):
    """A precedence between nodes of a schedule that repeats, over `repetitions` periods.

    Nodes are numbers from 0. Node `after` starts at least `ticks` after the start of `before`, less `repetitions` times
    the period.
    """

    before: int
    after: int
    ticks: Ticks
    repetitions: int


def least_length(nodes: int, arcs: Sequence[Arc], at_least: Ticks) -> tuple[Fraction, list[Fraction]]:
    """Return the least period, at least `at_least`, and the earliest start of each node in it.

    Both are in ticks. The starts are a list by node, with 0 as the earliest; `nodes` is the number of nodes. Newton's
    method on increasing values. Raises `ValueError` if the arcs of a cycle cannot be satisfied by any period.
    """
    length = Fraction(at_least)
    while True:
        found = _longest_paths(nodes, arcs, length)
        if isinstance(found, list):
            return length, [Fraction(start, length.denominator) for start in found]
        if found[1] <= 0:
            raise ValueError("the pattern waits for itself")
        length = Fraction(*found)


def _longest_paths(nodes: int, arcs: Sequence[Arc], length: Fraction) -> list[int] | tuple[Ticks, int]:
    """Return the earliest start of each node, at least 0, or a cycle that is too long for a period of `length` ticks.

    Starts are in units of 1 / denominator of `length` of a tick. Of a cycle it is the sums (ticks, repetitions) of
    its arcs; with 0 repetitions or fewer the cycle is too long for every period.
    """
    parts, whole = length.denominator, length.numerator
    weighted = [(a.before, a.after, a.ticks * parts - a.repetitions * whole, n) for n, a in enumerate(arcs)]
    longest = [0] * nodes
    came_by: list[int | None] = [None] * nodes
    while True:
        moved = False
        for before, after, weight, number in weighted:
            if longest[before] + weight > longest[after]:
                longest[after] = longest[before] + weight
                came_by[after] = number
                moved = True
        if not moved:
            return longest
        cycle = _cycle(arcs, came_by)
        if cycle:
            return sum(a.ticks for a in cycle), sum(a.repetitions for a in cycle)


def _cycle(arcs: Sequence[Arc], came_by: list[int | None]) -> list[Arc]:
    """Return the arcs of a cycle among the arcs by which nodes got their longest paths; empty if there is none.

    `came_by[n]` is the index in `arcs` of that arc of node n, None if it has none.
    """
    seen = [-1] * len(came_by)
    for root in range(len(came_by)):
        path: list[Arc] = []
        node = root
        while seen[node] < 0:
            seen[node] = root
            number = came_by[node]
            if number is None:
                break
            path.append(arcs[number])
            node = arcs[number].before
        else:
            if seen[node] == root:
                return path[next(n for n, arc in enumerate(path) if arc.after == node) :]
    return []
