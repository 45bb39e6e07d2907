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
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import ceil
from threading import Event

import numpy as np

from pipesched.problem.formatting import amount
from pipesched.problem.problem import Objective, Problem
from pipesched.results.certificate import Certificate
from pipesched.results.crossing_evidence import CrossingChains
from solver.bounds.analytic.critical_paths import Paths
from solver.bounds.crossing_blocks.bound import Labels, _joined
from solver.bounds.crossing_chains.layers import successors_of_chains
from solver.bounds.crossing_chains.steps import ChainSteps, chain_steps
from solver.bounds.crossing_steps.bound import Least
from solver.bounds.crossing_steps.layers import Layer, _slices, merged
from solver.bounds.crossing_steps.moves import NEVER
from solver.bounds.crossing_steps.steps import walked_chains

# The name of its certificates.
KIND = "crossings of all chains"
# Labels looked at in all; by one call of compiled code, which nothing can interrupt; and in a layer, which has memory.
WORK, _AT_ONCE, _LAYER = 20_000_000, 10_000, 2_000_000
# Labels of a state on one device, of which nearly all problems have fewer; on two devices fewer are affordable.
_WIDTH, _WIDTHS_OF_TWO = 512, (512,)
# Where labels are merged, values are tried in steps of so much of the gap: fewer are, the lower the value.
_STEP = 16


def crossing_bounds_of_chains(
    problem: Problem,
    stop: Event,
    proved: float,
    known: float,
    widths: Sequence[int] = _WIDTHS_OF_TWO,
    work: int = WORK,
) -> Iterator[Certificate]:
    """Above what is `proved`, up to the value of a schedule that is `known`: each above those before, in ticks.

    On single devices, then on the first devices of all chains if one of these proved most: they have to wait for each
    other then. Nothing for other objectives than the makespan, with one chain, or where a pass is several tasks.
    """
    chains = [*walked_chains(problem)]
    if problem.objective is not Objective.MAKESPAN or len(chains) < 2:
        return
    if problem.network.options or not problem.network.one_task_each:
        return
    paths, best, until, seen, of = Paths(problem), ceil(proved), ceil(known), set[object](), -1
    firsts = tuple(dict.fromkeys(problem.placement.stage_device[chain[0]] for chain in chains))
    singles = [((device,), _WIDTH) for device in range(problem.devices)]
    for devices, width in (*singles, *((firsts, width) for width in widths if len(firsts) > 1)):
        steps = chain_steps(problem, paths, devices)
        if steps is None or best >= until or _same(steps, width, seen) or (len(devices) > 1 and of not in firsts):
            continue
        for value, least in _raised(steps, width, best, until, work, stop):
            work -= least.work
            if least.ticks is not None and least.ticks > best:
                best, of = least.ticks, devices[0]
                yield _certificate(problem, best, CrossingChains(devices, width, value))
            if work <= 0 or stop.is_set():
                return


def _same(steps: ChainSteps, width: int, seen: set[object]) -> bool:
    """Whether these steps were tried before, as where two chains are mirror images; chains count in any order."""
    own = (steps.device, steps.ticks, steps.later, steps.lag, steps.takes, steps.microbatches, steps.after)
    rows = list(zip(*(column.tolist() for column in (*own, steps.blocks.max(axis=1))), strict=True))
    chains = sorted(tuple(rows[n] for n in np.flatnonzero(steps.last == last)) for last in set(steps.last.tolist()))
    key = width, tuple(chains), tuple(steps.room.tolist()), tuple(steps.waiting.tolist())
    found = key in seen
    seen.add(key)
    return found


def _raised(
    steps: ChainSteps, width: int, proved: int, known: int, work: int, stop: Event
) -> Iterator[tuple[int, Least]]:
    """Values and what was proved with them, in steps above what is proved.

    On one device that of a schedule comes first, with which few labels are merged, if any: then nothing is left to try.
    """
    step, most = max(1, (known - proved) // _STEP), known
    if len(steps.room) == 1:
        least = least_of_chains(steps, width, known, work, stop)
        yield known, least
        if least.ticks is None or least.ticks == known or not least.merged:
            return
        proved, most, work = max(proved, least.ticks), known - 1, work - least.work
    while proved < most and work > 0 and not stop.is_set():
        value = min(most, proved + step)
        least = least_of_chains(steps, width, value, work, stop)
        yield value, least
        if least.ticks != value:
            return
        proved, work = value, work - least.work


def least_of_chains(steps: ChainSteps, width: int, value: int, work: int, stop: Event) -> Least:
    """The least end of the orders that are followed, by dynamic programming, a step a layer; or the value."""
    none = Labels(np.empty(0, np.int64), np.empty((0, steps.slots + 2 * len(steps.room)), np.int64))
    layer = Layer(np.zeros(1, np.int64), np.array([0, 1], np.int64), np.zeros((1, none.labels.shape[1]), np.int64))
    best, used, merges, further = NEVER, 0, False, none
    while len(layer.keys) or len(further.keys):
        near, far, before = [further], [none], used
        for since, until in _slices(layer.first, _AT_ONCE):
            if used > work or used - before > _LAYER or stop.is_set():
                return Least(None, used, True)
            keys, labels, far_keys, far_labels, ended = successors_of_chains(layer, since, until, steps, value)
            near.append(Labels(keys.copy(), labels.copy()))
            far.append(Labels(far_keys.copy(), far_labels.copy()))
            best, used = min(best, ended), used + len(keys) + len(far_keys)
        now, further = _joined(near), _joined(far)
        order = np.argsort(now.keys, kind="stable")
        *parts, merges_here = merged(now.keys[order], now.labels[order], width)
        layer, merges = Layer(*parts), merges or merges_here
    return Least(min(best, value), used, merges)


def _certificate(problem: Problem, least: int, own: CrossingChains) -> Certificate:
    devices = own.devices
    where = f"device {devices[0]}" if len(devices) == 1 else f"devices {', '.join(map(str, devices))}"
    together = ", or run two at a time as an overlapped block, which ends both" if problem.overlaps else ""
    text = (
        f"On {where} the forwards and gradients of all chains take turns{together}; a forward starts only while there "
        f"is room for it in the memory that the chains share; a micro-batch is away for as long as other devices take. "
        f"Orders that cannot end before {amount(problem, own.below)} are not followed to their end; in whichever order "
        f"{'and blocks ' if problem.overlaps else ''}they run, they take at least {amount(problem, least)}."
    )
    return Certificate(KIND, least, text, devices[0], own)
