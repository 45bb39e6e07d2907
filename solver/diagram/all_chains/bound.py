"""The bound by crossings of all chains: the least time over all orders of their steps on some devices, and all blocks.

Where several chains come to the same devices, as in two directions, they share the time and the memory there, and a
forward of one may run in a block with a gradient of another. So all forwards and gradients on the devices that are kept
are the steps, those of each chain in turn; other devices are delays, and so is the way from time 0 to the first step of
a chain, and from its last one until the backward of its first stage is done.

Micro-batches of a chain are alike. If their names are exchanged on each stage by the order in which they run there,
each device runs the same at the same times, each place in its order keeps its block, all that it waits for is still
before it, and the memory that is held stays what it was. So it is enough to count, for each step, how many have done
it. Weight passes may be interrupted; a forward starts when all of them have run but for as many as leave room for it,
each of which may be the longest of the device.

Labels from which nothing ends below a value are left out: a micro-batch in flight still has its way before it, and a
device has what is left of its work, less the most that blocks save, and after its last gradient the way back. What is
left ends at the least of their ends, what was left out at the value or later: the lesser of the two is proved.
An end is when all devices are done and the last micro-batch is back; that an earlier one is back below the value is
asked as it leaves, so that a lower value may prove more, and single devices are asked for values in between.

Of several devices, each says by itself what must follow (`follow.py`), and labels that cannot be followed so below the
value are left out too (`guide.py`): then so few remain that four devices are affordable.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from math import ceil
from threading import Event
from typing import NamedTuple

import numpy as np

from pipesched.problem.formatting import amount
from pipesched.problem.problem import Objective, Problem
from pipesched.results.certificate import Certificate
from pipesched.results.crossing_evidence import CrossingChains
from solver.bounds.analytic.critical_paths import Paths
from solver.diagram.all_chains.follow import what_follows
from solver.diagram.all_chains.guide import Guide, guide_of, in_time
from solver.diagram.all_chains.layers import successors_of_chains
from solver.diagram.all_chains.steps import ChainSteps, chain_steps
from solver.diagram.all_orders import plain_passes
from solver.diagram.layers import Labels, Layer, Least, first_layer, joined, slices
from solver.diagram.reduction import reduced
from solver.diagram.steps import walked_chains
from solver.diagram.transitions import NEVER
from solver.diagram.values import raised
from solver.tuning import MOST_LABELS, TOGETHER, VALUE_SHORTEST, VALUE_STEP, WIDTH

# The name of its certificates.
KIND = "crossings of all chains"
# Labels looked at by one call of compiled code, which nothing can interrupt; and in a layer, which has memory.
_AT_ONCE, _LAYER = 10_000, 2_000_000
# Rows of what follows on one device kept distinct for a state; the check counts as many.
_ROWS = 64


class _Single(NamedTuple):
    """A device, its steps, and what was proved with it by itself, in ticks."""

    device: int
    steps: ChainSteps
    proved: int


def bounds_of_chains(
    problem: Problem,
    stop: Event,
    proved: float,
    known: float,
    width: int = WIDTH,
    work: int = MOST_LABELS,
) -> Iterator[Certificate]:
    """Above what is `proved`, up to the value of a schedule that is `known`: each above those before, in ticks.

    On single devices, then on those together that prove most by themselves. Nothing for periods, with one chain, or
    where a pass is several tasks.
    """
    if problem.objective not in (Objective.MAKESPAN, Objective.SPAN) or len([*walked_chains(problem)]) < 2:
        return
    if not plain_passes(problem):
        return
    paths, best, until = Paths(problem), ceil(proved), ceil(known)
    singles, seen = list[_Single](), dict[object, int]()
    for device in range(problem.devices):
        steps = chain_steps(problem, paths, (device,))
        if steps is None or best >= until:
            continue
        key = _identity(steps)
        if key not in seen:
            seen[key] = 0
            for value, least in _on_one(steps, best, until, work, stop):
                work -= least.work
                seen[key] = max(seen[key], least.ticks or 0)
                if least.ticks is not None and least.ticks > best:
                    best = least.ticks
                    yield _certificate(problem, best, CrossingChains((device,), WIDTH, value, problem.tick))
                if work <= 0 or stop.is_set():
                    return
        singles.append(_Single(device, steps, seen[key]))
    for devices, value, ticks in _raised(problem, paths, singles, width, best, until, work, stop):
        if ticks > best:
            best = ticks
            yield _certificate(problem, best, CrossingChains(devices, width, value, problem.tick))


def _raised(
    problem: Problem,
    paths: Paths,
    singles: Sequence[_Single],
    width: int,
    best: int,
    until: int,
    work: int,
    stop: Event,
) -> Iterator[tuple[tuple[int, ...], int, int]]:
    """Devices, value and what was proved with them: few devices first, more once these prove no more."""
    step = max(1, (until - best) // VALUE_STEP)
    for count in range(2, TOGETHER + 1):
        together = _together(problem, paths, singles, count)
        if together is None:
            return
        devices, steps, alone = together
        # A value for which half of the work is too little is tried nearer to what is proved.
        least_below = partial(_within_half, steps, alone, width, stop)
        for found in raised(least_below, (best, until), (step, max(1, step // VALUE_SHORTEST)), work, stop):
            work, best = work - found.work, max(best, found.ticks)
            yield devices, found.below, found.ticks
        if work <= 0 or stop.is_set():
            return


def _together(
    problem: Problem, paths: Paths, singles: Sequence[_Single], count: int
) -> tuple[tuple[int, ...], ChainSteps, list[ChainSteps]] | None:
    """So many devices of those that prove most, with their steps and those of each by itself; None where too many.

    Of a span the one that proves most counts, and comes first; only what follows on that one is known.
    """
    chosen, span = sorted(singles, key=lambda one: -one.proved)[:count], problem.objective is Objective.SPAN
    if not span:
        chosen.sort(key=lambda one: one.device)
    devices = tuple(one.device for one in chosen)
    steps = chain_steps(problem, paths, devices) if len(devices) == count else None
    return None if steps is None else (devices, steps, [one.steps for one in (chosen[:1] if span else chosen)])


def _identity(steps: ChainSteps) -> object:
    """Equal for devices that prove the same, as where two chains are mirror images; chains count in any order."""
    own = (steps.device, steps.ticks, steps.later, steps.lag, steps.takes, steps.microbatches, steps.after)
    rows = list(zip(*(column.tolist() for column in (*own, steps.blocks.max(axis=1))), strict=True))
    chains = sorted(tuple(rows[n] for n in np.flatnonzero(steps.last == last)) for last in set(steps.last.tolist()))
    return tuple(chains), tuple(steps.room.tolist()), tuple(steps.waiting.tolist())


def _on_one(steps: ChainSteps, proved: int, known: int, work: int, stop: Event) -> Iterator[tuple[int, Least]]:
    """Values and what was proved with them on one device: little above what is proved, then halfway to a schedule's."""
    low, high, value = proved, known, proved + 1
    while low < high and not stop.is_set():
        least = least_of_chains(steps, WIDTH, value, work, stop)
        yield value, least
        if least.ticks is None:
            return
        low, high = max(low, least.ticks), high if least.ticks >= value else value - 1
        value = (low + high + 1) // 2


def _within_half(
    steps: ChainSteps, alone: Sequence[ChainSteps], width: int, stop: Event, value: int, work: int
) -> Least:
    return guided(steps, alone, width, stop, value, work // 2)


def guided(steps: ChainSteps, alone: Sequence[ChainSteps], width: int, stop: Event, value: int, work: int) -> Least:
    """As `least_of_chains` without what cannot be followed below the value on one of the first devices by itself."""
    guides, used = list[Guide](), 0
    for number, own in enumerate(alone):
        reached = list[Labels]()
        least = least_of_chains(own, WIDTH, value, work - used, stop, reached=reached)
        used += least.work
        follows = None if least.ticks is None else what_follows(own, reached, _ROWS, value, stop)
        if follows is None:
            return Least(None, used, True)
        guides.append(guide_of(steps, own, number, follows))
    least = least_of_chains(steps, width, value, work - used, stop, tuple(guides))
    return Least(least.ticks, used + least.work, least.merged)


def least_of_chains(
    steps: ChainSteps,
    width: int,
    value: int,
    work: int,
    stop: Event,
    guides: tuple[Guide, ...] = (),
    reached: list[Labels] | None = None,
) -> Least:
    """The least end of the orders that are followed, by dynamic programming, a step a layer; or the value.

    Notes the states that are `reached`, with the least of every time there.
    """
    layer = first_layer(steps.slots + 2 * len(steps.room))
    layer.labels[:, steps.slots :] = steps.origin
    none = Labels(layer.keys[:0], layer.labels[:0])
    best, used, merges, further = NEVER, 0, False, none
    while len(layer.keys) or len(further.keys):
        if reached is not None and len(layer.keys):
            reached.append(Labels(layer.keys, np.minimum.reduceat(layer.labels, layer.first[:-1], axis=0)))
        near, far, before = [further], [none], used
        for since, until in slices(layer.first, _AT_ONCE):
            if used > work or used - before > _LAYER or stop.is_set():
                return Least(None, used, True)
            keys, labels, far_keys, far_labels, ended = successors_of_chains(layer, since, until, steps, value)
            near.append(in_time(Labels(keys.copy(), labels.copy()), steps, guides, value))
            far.append(in_time(Labels(far_keys.copy(), far_labels.copy()), steps, guides, value))
            best, used = min(best, ended), used + len(keys) + len(far_keys)
        now, further = joined(near), joined(far)
        order = np.argsort(now.keys, kind="stable")
        *parts, merges_here = reduced(now.keys[order], now.labels[order], width)
        layer, merges = Layer(*parts), merges or merges_here
    return Least(min(best, value), used, merges)


def _certificate(problem: Problem, least: int, own: CrossingChains) -> Certificate:
    devices = own.devices
    where = f"device {devices[0]}" if len(devices) == 1 else f"devices {', '.join(map(str, devices))}"
    together = ", or run two at a time as an overlapped block, which ends both" if problem.overlaps else ""
    if problem.objective is Objective.SPAN:
        where += f", in time from the first start on device {devices[0]} on,"
    text = (
        f"On {where} the forwards and gradients of all chains take turns{together}; a forward starts only while there "
        f"is room for it in the memory that the chains share; a micro-batch is away for as long as other devices take. "
        f"Orders that cannot end before {amount(problem, own.below)} are not followed to their end; in whichever order "
        f"{'and blocks ' if problem.overlaps else ''}they run, they take at least {amount(problem, least)}."
    )
    return Certificate(KIND, least, text, devices[0], own)
