"""The bound by crossings on some devices: the least time over all orders of a chain's steps there.

Micro-batches of a chain are alike. If their names are exchanged on each stage by the order in which they run there,
what they wait for is still before them: the k-th forward of a stage ends before the k-th one of the next stage starts,
and so the gradients. So on every stage they run in turn, and an order of steps says how many each micro-batch has
done, which leaves the memory of a device at every step as it was. A device is not freed by this from what its other
stages do: their steps are in the same order. A dynamic program goes through the orders, a step a layer; of many labels
of a state near ones are merged, each time the earlier one: a relaxed decision diagram. The steps of an order can be
taken by their starts, so that after a step nothing starts before it did.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from threading import Event
from typing import NamedTuple

import numpy as np

from pipesched.problem.formatting import amount, counted
from pipesched.problem.problem import Problem
from pipesched.results.certificate import Certificate
from pipesched.results.crossing_evidence import CrossingSteps
from solver.bounds.analytic.critical_paths import Paths
from solver.bounds.crossing_steps.device_sets import Trial, trials
from solver.bounds.crossing_steps.growth import ROUNDS, skip
from solver.bounds.crossing_steps.layers import Layer, _slices, merged, successors
from solver.bounds.crossing_steps.moves import NEVER
from solver.bounds.crossing_steps.steps import Numbers, Steps, steps_of, walked_chains

# The name of its certificates.
KIND = "crossings of steps"
# Labels looked at in all; by one call of compiled code, which nothing can interrupt; and in a layer, which has memory.
WORK, _AT_ONCE, _LAYER = 40_000_000, 50_000, 2_000_000


class Least(NamedTuple):
    """The least ticks from the first step to the end of what counts, None where that is too much work.

    How many labels were looked at; and whether labels were merged, so that more of them might prove more.
    """

    ticks: int | None
    work: int
    merged: bool


def crossing_step_bounds(
    problem: Problem, stop: Event, widths: Sequence[int] = (8, 64), work: int = WORK
) -> Iterator[Certificate]:
    """On more and more devices of each chain, while that takes no more than so much work; each above those before.

    Nothing where blocks overlap a forward and a backward, or a pass is several tasks.
    """
    if problem.overlaps or problem.network.options or not problem.network.one_task_each:
        return
    best, paths, told_apart = 0, Paths(problem), set[tuple[tuple[int, ...], tuple[int, ...]]]()
    for trial in trials(problem, [*walked_chains(problem)], widths):
        steps = steps_of(problem, paths, trial.chain, trial.devices)
        if steps is None or (trial.chain, trial.devices) in told_apart:
            continue
        found = least_value(steps, trial.width, work, stop)
        work -= found.work
        if not found.merged:
            told_apart.add((trial.chain, trial.devices))
        if found.ticks is not None and found.ticks > best:
            best = found.ticks
            yield _certificate(problem, trial, best)
        if work <= 0 or stop.is_set():
            return


def first_layer(size: int) -> Layer:
    """The label before the first step, with so many numbers."""
    return Layer(np.zeros(1, np.int64), np.array([0, 1], np.int64), np.zeros((1, size), np.int64))


def least_value(steps: Steps, width: int, work: int, stop: Event, until: int = ROUNDS) -> Least:
    """By dynamic programming; after `until` rounds, in each of which every step is taken once, some may be skipped."""
    count, best, used, merges, done = len(steps.ticks), NEVER, 0, False, 0
    layer = first_layer(steps.in_flight + 2 * len(steps.room))
    rounds = list[Layer]()
    while len(layer.keys):
        keys, labels, ended = _successors(layer, steps, done, stop)
        best, used, done = min(best, ended), used + len(keys), done + 1
        if used > work or len(keys) > _LAYER or stop.is_set():
            return Least(None, used, True)
        *parts, merges_here = merged(keys, labels, width)
        layer, merges = Layer(*parts), merges or merges_here
        if done % count == 0 and len(rounds) < until:
            rounds.append(layer)
            if len(rounds) == until:
                skipped, later = skip(rounds, steps.in_flight, steps.microbatches - done // count - steps.in_flight - 1)
                layer, done = layer._replace(labels=layer.labels + later), done + skipped * count
    return Least(best if best < NEVER else None, used, merges)


def _successors(layer: Layer, steps: Steps, done: int, stop: Event) -> tuple[Numbers, Numbers, int]:
    """Keys and labels after one step more, sorted by key, and the least value of what ended with it."""
    parts, ended, size = [(np.empty(0, np.int64), np.empty((0, layer.labels.shape[1]), np.int64))], NEVER, 0
    for since, until in _slices(layer.first, _AT_ONCE // (steps.in_flight + 1)):
        if stop.is_set() or size > _LAYER:
            break
        keys, labels, value = successors(layer, since, until, steps, done)
        parts, ended, size = [*parts, (keys, labels)], min(ended, value), size + len(keys)
    keys, labels = (np.concatenate(column) for column in zip(*parts, strict=True))
    order = np.argsort(keys, kind="stable")
    return keys[order], labels[order], ended


def _certificate(problem: Problem, trial: Trial, value: int) -> Certificate:
    chain, devices = trial.chain, trial.devices
    count = len(problem.microbatches_of[chain[0]])
    where = f"device {devices[0]}" if len(devices) == 1 else f"devices {', '.join(map(str, devices))}"
    stages = counted(sum(problem.placement.stage_device[stage] in devices for stage in chain), "stage")
    text = (
        f"On {where} the forwards and gradients of {stages} of a chain take turns: a device runs one at a time, "
        f"and starts a forward only while its memory has room for it; a micro-batch is away for as long as other "
        f"devices take. In whichever order they run, all {count} micro-batches take at least {amount(problem, value)}."
    )
    return Certificate(KIND, value, text, devices[0], CrossingSteps(chain[0], devices, trial.width))
