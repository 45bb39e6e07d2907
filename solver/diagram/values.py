"""Values between what is proved and a schedule's, one after the other: the lower, the fewer orders are followed."""

from __future__ import annotations

from collections.abc import Iterator
from threading import Event
from typing import NamedTuple

from solver.diagram.follow import least_end
from solver.diagram.guide import Guide
from solver.diagram.steps import Kept

# A step is twice as long as that of a value that was reached with so few labels, and half as long after so many times
# the labels of the value before; a quarter after one that proved nothing.
_FEW, _TIMES = 50_000, 40


class Reached(NamedTuple):
    """What was proved, the value below which orders were followed, and how many labels were looked at."""

    ticks: int
    below: int
    work: int


def raised(
    kept: Kept,
    guide: Guide,
    width: int,
    between: tuple[int, int],
    steps: tuple[int, int],
    work: int,
    stop: Event,
) -> Iterator[Reached]:
    """What is proved with each value, in ticks with what is beside: above what is proved, up to that of a schedule.

    `steps` are the first one from a value to the next, and that below which no shorter one is tried.
    """
    (proved, known), (step, shortest) = between, steps
    proved, before = max(proved, kept.beside), _FEW
    while proved < known and step >= shortest and work > 0 and not stop.is_set():
        value = min(known, proved + step)
        least = least_end(kept.steps, width, work, stop, guide, value - kept.beside)
        ticks = 0 if least.ticks is None else least.ticks + kept.beside
        yield Reached(ticks, value, least.work)
        if ticks < value:
            step //= 2 if ticks > proved else 4
        elif least.work <= _FEW:
            step *= 2
        elif least.work > _TIMES * before:
            step = max(shortest, step // 2)
        before, proved, work = max(_FEW, least.work), max(proved, ticks), work - least.work
