"""Memory of devices and hosts, and windows of gatherings: at every taking the level is at most the capacity."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations
from math import floor, lcm
from typing import Any

from benchmarks.matrix.exact.tasks import Change, Literal, Tasks


def add_memory(tasks: Tasks, strict: bool) -> None:
    """A row for each taking. `strict` counts of two takings at one instant each in the row of the other; else one of
    them alone, in any order of each two."""
    shape = tasks.shape
    rooms: dict[str, Fraction | None] = {f"device {d}": room for d, room in enumerate(shape.rooms)}
    rooms |= {f"host {n}": host.capacity for n, host in enumerate(shape.hosts)}
    if shape.window is not None:
        rooms |= {f"window {d}": Fraction(shape.window) for d in range(shape.devices)}
    for memory, room in rooms.items():
        if room is not None:
            _add_room(tasks, tasks.takes.get(memory, []), tasks.gives.get(memory, []), room, strict)


def _add_room(tasks: Tasks, takes: Sequence[Change], gives: Sequence[Change], room: Fraction, strict: bool) -> None:
    cp, step = tasks.cp, lcm(*(change.amount.denominator for change in (*takes, *gives)))
    before: dict[tuple[int, int], Literal] = {}
    for (a, change), (b, other) in combinations(enumerate(takes), 2):
        before[a, b], before[b, a] = cp.new_bool_var(""), cp.new_bool_var("")
        cp.add(change.at >= other.at + strict).only_enforce_if(~before[a, b], change.runs)
        cp.add(other.at >= change.at + strict).only_enforce_if(~before[b, a], other.runs)
        # Where passes have no length the order at one instant is open, but there is one.
        cp.add_bool_or(before[a, b], before[b, a])
    for b, change in enumerate(takes):
        terms: list[Any] = [int(change.amount * step)]
        for a, other in enumerate(takes):
            if a != b:
                counted = cp.new_bool_var("")
                cp.add_bool_or(~before[a, b], ~other.runs, counted)
                terms.append(int(other.amount * step) * counted)
        for given in gives:
            if given.of == change.of and given.rank >= change.rank:
                continue  # later in one life
            back = cp.new_bool_var("")
            cp.add_implication(back, given.runs)
            cp.add(given.at <= change.at).only_enforce_if(back)
            terms.append(-int(given.amount * step) * back)
        cp.add(sum(terms) <= floor(room * step)).only_enforce_if(change.runs)
