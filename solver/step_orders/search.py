"""Beam search over the orders of all steps of a chain on all its devices, a number of orders for each state."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from pipesched.problem.problem import Problem
from solver.bounds.analytic.critical_paths import Paths
from solver.bounds.crossing_steps.layers import NEVER
from solver.bounds.crossing_steps.steps import Numbers, Steps, state_count, steps_of, walked_chains
from solver.step_orders.labels import DELAYS, best_of, longer


class Taken(NamedTuple):
    """A step of the order, by its number on the way of a micro-batch along the chain and back.

    It waits for so many weight passes more than end before it anyway.
    """

    step: int
    delay: int


def only_chain(problem: Problem) -> tuple[int, ...] | None:
    """The chain that all micro-batches walk, None where there are several."""
    chains = [*walked_chains(problem)]
    return chains[0] if len(chains) == 1 else None


def order_count(problem: Problem) -> int | None:
    """About how many orders are looked at with one for each state; None where orders of steps say nothing."""
    chain = only_chain(problem)
    if chain is None or problem.overlaps or problem.network.options or not problem.network.one_task_each:
        return None
    return step_count(problem) * state_count(problem, chain, _devices(problem, chain))


def step_count(problem: Problem) -> int:
    """How many steps an order has."""
    chain = only_chain(problem)
    return 0 if chain is None else 2 * len(chain) * len(problem.microbatches_of[chain[0]])


def step_order(problem: Problem, width_of: Callable[[int, int], int]) -> list[Taken] | None:
    """The best order met; None where numbers grow too large, or it is ended.

    `width_of` says how many orders of a state stay, after so many steps and with so many states; 0 ends it.
    """
    chain = only_chain(problem)
    steps = None if chain is None else steps_of(problem, Paths(problem), chain, _devices(problem, chain))
    if steps is None:
        return None
    weight, devices, done = _shortest_weights(steps), len(steps.room), 0
    keys, first = np.zeros(1, np.int64), np.array([0, 1], np.int64)
    labels = np.zeros((1, steps.in_flight + 3 * devices), np.int64)
    history: list[tuple[Numbers, Numbers]] = []
    least, end = NEVER, (-1, -1, -1)
    while len(keys):
        width = width_of(done, len(keys))
        if not width:
            return None
        keys, labels, before, taken, ended, last, step = longer(keys, first, labels, steps, weight, done)
        if ended < least:
            least, end = ended, (done, last, step)
        order = np.argsort(keys, kind="stable")
        keys, labels = keys[order], labels[order]
        keys, first, kept = best_of(keys, labels, width)
        labels, kept = labels[kept], order[kept]
        history.append((before[kept], taken[kept]))
        done += 1
    return None if least == NEVER else _traced(history[: end[0]], end[1], end[2])


def _traced(history: Sequence[tuple[Numbers, Numbers]], label: int, step: int) -> list[Taken]:
    """The steps that lead to a label, and one more."""
    found = [step]
    for before, taken in reversed(history):
        found.append(int(taken[label]))
        label = before[label]
    return [Taken(*divmod(one, DELAYS)) for one in reversed(found)]


def _devices(problem: Problem, chain: Sequence[int]) -> tuple[int, ...]:
    return tuple(dict.fromkeys(problem.placement.stage_device[stage] for stage in chain))


def _shortest_weights(steps: Steps) -> Numbers:
    """Of each device."""
    gradients = np.arange(len(steps.ticks)) >= len(steps.ticks) // 2
    of = range(len(steps.room))
    return np.array([steps.later[gradients & (steps.device == device)].min() for device in of], np.int64)
