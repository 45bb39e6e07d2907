"""Sequence of thresholds between the proved bound and a schedule's value; a lower threshold needs fewer orders."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from threading import Event
from typing import NamedTuple

from solver.diagram.layers import Least
from solver.diagram.params import DIAGRAMS


class Refuted(NamedTuple):
    """The bound proved, the `threshold` before which orders were followed, and the number of labels looked at."""

    ticks: int
    threshold: int
    work: int


def refuted_thresholds(
    least_end_before: Callable[[int, int], Least],
    between: Callable[[], tuple[int, int]],
    steps: tuple[int, int],
    work: int,
    stop: Event,
) -> Iterator[Refuted]:
    """Yield the bound proved with each threshold, in ticks, from the proved bound up to a schedule's value (`between`).

    `least_end_before` takes a threshold and half of the remaining work; if that is too little, a lower threshold is
    tried. `steps` are the first step between thresholds, and the shortest one tried.
    """
    (proved, known), (step, shortest) = between(), steps
    while proved < known and step >= shortest and work > 0 and not stop.is_set():
        value = min(known, proved + step)
        least = least_end_before(value, work // 2)
        ticks, work = least.ticks or 0, work - least.work
        yield Refuted(ticks, value, least.work)
        if ticks < value:
            step //= 2 if ticks > proved else 4
        elif least.work <= DIAGRAMS.quick:
            step *= 2
        now, known = between()
        proved = max(proved, ticks, now)
