"""The bound with whole weight passes: all orders that may end below a value, none merged.

Names of micro-batches are exchanged, and steps taken by their starts, as in every diagram, so that the k-th
weight pass of a stage, too, comes after its k-th gradient. A backward in one go is its gradient with the rest right
behind it; of one that is split the rest is the weight pass, or the end of it. The rest of no backward is shorter than
what `later` says, it is not interrupted, and as it takes memory it has been run before a forward, but for as many as
that leaves room for. Nothing else is asked of weight passes, so that every schedule is an order of steps with some
weight passes in front of each step. What a label says of a device is when it has run all that was put in front of its
steps, and how many weight passes of each length are left.

A label A is as good as a label B of its state, if its steps end no later and its devices start their next step no
later, and each device by the time at which B's has run all that was put in front of its steps, or can start a step,
has run what B's has: then whatever B's device leaves waiting at a step, A's leaves that or less, the step starts no
later, and A is as good as B again. So it is enough to follow one of the two. From this follow

- what is put in front of a step: where one weight pass more ends before all else lets the step start, that one more is
  as good. Where one fewer lets the step start no sooner than all else does, that one can come behind it instead, and
  the device is free when it was, so that one fewer is as good if memory allows it. Each changes the time that is
  spent in the other direction, so that a choice is left which no other is as good as;
- what a device runs until something can come to it: all that waits, if that ends by then, or of weight passes of one
  length as many as do. Where nothing waits it has time until then;
- which labels of a state stay: those than which no other is as good.

Devices with several stages have a number for each length, and every choice of numbers in front of a step is tried.
Where one pass is as long as another, as with equal stages, they are one kind: which of them ran says nothing of
times, and memory counts each as the least of its device.

How long the rest takes at least is that of a diagram whose weight passes may be interrupted:
with whole ones every time is the same or later. A label that comes to the value with it is left out. What is left
ends at the least of its ends, or at the value: as no labels are merged, that is what the relaxed problem takes, and
where all devices are kept and each has one stage, little is relaxed.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil
from threading import Event
from typing import NamedTuple

from pipesched.problem.problem import Problem
from pipesched.results.certificate import Certificate
from solver.bounds.analytic.critical_paths import Paths
from solver.diagram.all_orders import plain_passes
from solver.diagram.certificate import certificate_of
from solver.diagram.completion import completion, numbers_of
from solver.diagram.steps import Kept, devices_of, kept_stages, stages_on, walked_chains
from solver.diagram.whole_weights.follow import Least, least_of_whole

# Labels looked at in all; numbers of the pass backwards, four bytes each.
WORK, MOST_NUMBERS = 4_000_000, 20_000_000
# Memory leaves out many states that are counted before they are looked at: up to so many times those that there are.
_OVERSTATED = 8


class Orders(NamedTuple):
    """What was found of the orders of a chain's steps on some devices."""

    kept: Kept
    least: Least


def bounds_of_whole_weights(
    problem: Problem,
    stop: Event,
    proved: float,
    known: float,
    most_devices: int | None = None,
    work: int = WORK,
    numbers: int = MOST_NUMBERS,
) -> Iterator[Certificate]:
    """Above what is `proved`, in ticks: what all orders take that end below the value of a schedule that is `known`.

    Of each chain, on all of its devices, or the first so many. Nothing where blocks overlap a forward and a backward,
    or a pass is several tasks, or orders are too many.
    """
    best = ceil(proved)
    for found in whole_orders(problem, stop, known, most_devices, work, numbers):
        if found.least.ticks is not None and found.least.ticks > best:
            best = found.least.ticks
            yield certificate_of_orders(problem, found, ceil(known))


def whole_orders(
    problem: Problem,
    stop: Event,
    known: float,
    most_devices: int | None = None,
    work: int = WORK,
    numbers: int = MOST_NUMBERS,
) -> Iterator[Orders]:
    """Of each chain, those that end below a value."""
    if problem.overlaps or not plain_passes(problem):
        return
    paths = Paths(problem)
    for chain in walked_chains(problem):
        stages = stages_on(problem, chain, devices_of(problem, chain)[:most_devices])
        kept = kept_stages(problem, paths, chain, stages)
        if kept is None or numbers_of(kept) > _OVERSTATED * numbers:
            continue
        rest = completion(kept.steps, numbers, stop)
        if rest is None:
            continue
        found = least_of_whole(kept.steps, rest, ceil(known), work, stop)
        work -= found.work
        yield Orders(kept, found)
        if work <= 0 or stop.is_set():
            return


def certificate_of_orders(problem: Problem, found: Orders, value: int) -> Certificate:
    """That no schedule takes less than the least of its orders, of those that may end below a value."""
    kept, least = found.kept, found.least.ticks
    assert least is not None
    return certificate_of(problem, kept, least, below=value, guide=kept.stages, whole=devices_of(problem, kept.stages))
