"""Values between what is proved and a schedule's, one after the other: the lower, the fewer orders are followed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from threading import Event
from typing import NamedTuple

from solver.diagram.layers import Least
from solver.diagram.params import DIAGRAMS


class Refuted(NamedTuple):
    """What was proved, the value below which orders were followed, and how many labels were looked at."""

    ticks: int
    below: int
    work: int


def refuted_thresholds(
    least_below: Callable[[int, int], Least],
    between: Callable[[], tuple[int, int]],
    steps: tuple[int, int],
    work: int,
    stop: Event,
) -> Iterator[Refuted]:
    """What is proved with each value, in ticks: above what is proved by then, up to that of a schedule, `between` both.

    Of a value and half of the work that is left, `least_below` says what is proved: a value for which that is too
    little is tried nearer to what is proved. `steps` are the first one from a value to the next, and that below which
    no shorter one is tried.
    """
    (proved, known), (step, shortest) = between(), steps
    while proved < known and step >= shortest and work > 0 and not stop.is_set():
        value = min(known, proved + step)
        least = least_below(value, work // 2)
        ticks, work = least.ticks or 0, work - least.work
        yield Refuted(ticks, value, least.work)
        if ticks < value:
            step //= 2 if ticks > proved else 4
        elif least.work <= DIAGRAMS.quick:
            step *= 2
        now, known = between()
        proved = max(proved, ticks, now)
