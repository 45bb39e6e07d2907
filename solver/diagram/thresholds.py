"""Sequence of thresholds between the proved bound and a schedule's value; a lower threshold needs fewer orders."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from threading import Event
from typing import NamedTuple

from pipesched.problem.quantities import Ticks
from solver.diagram.layers import Least
from solver.diagram.params import DIAGRAMS


class Refuted(NamedTuple):
    """Result for one threshold: the bound that it proved, in `ticks`, and the number of labels looked at (`work`).

    Only orders that may end before `threshold` ticks were followed, so `ticks` is at most `threshold`; it is 0 if the
    work did not suffice.
    """

    ticks: Ticks
    threshold: Ticks
    work: int


def refuted_thresholds(
    least_end_before: Callable[[Ticks, int], Least],
    between: Callable[[], tuple[Ticks, Ticks]],
    steps: tuple[Ticks, Ticks],
    work: int,
    stop: Event,
    at_once: int = 0,
) -> Iterator[Refuted]:
    """Try thresholds from the proved bound up to a schedule's value, and yield the bound in ticks that each one proves.

    That may be less than the proved bound, or 0. `between()` returns the proved bound and the schedule's value.
    `least_end_before(threshold, labels)` runs the diagram with half of the remaining `work`, in labels; if that is too
    little, a lower threshold is tried. `steps` has the first step between thresholds and the shortest one, in ticks.
    The schedule's value is tried as threshold before all others, within `at_once` labels (0: it is not): if no labels
    were merged there, lower thresholds prove no more.
    """
    (proved, known), (step, shortest) = between(), steps
    if at_once and proved < known and not stop.is_set():
        least = least_end_before(known, min(at_once, work))
        yield Refuted(least.ticks or 0, known, least.work)
        if least.ticks is not None and not least.merged:
            return
        work, (proved, known) = work - least.work, between()
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
