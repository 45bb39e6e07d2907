"""Beam search over the orders of all steps of a chain on all its devices, a number of orders for each state."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from threading import Event
from typing import NamedTuple

import numpy as np

from pipesched.problem.problem import Problem
from solver.bounds.analytic.critical_paths import Paths
from solver.diagram.completion import CompletionRows, completion
from solver.diagram.modelled_stages import owner_of, state_count, walked_chains
from solver.diagram.modelled_steps import modelled_steps
from solver.diagram.params import DIAGRAMS
from solver.diagram.steps import NEVER, NOTHING, ModelledSteps, Numbers, Steps, without_blocks
from solver.step_orders.labels import DELAYS, MODES, best_of, longer
from solver.step_orders.weights import Weights, weights_of


class Taken(NamedTuple):
    """A step of the order, by its number on a micro-batch's path along the chain and back.

    It waits for `delay` more weight passes than end before it anyway. It may be a full backward.
    """

    step: int
    delay: int
    full: bool = False


class Diagram(NamedTuple):
    """The only chain, its steps on all its devices, their weight passes, and what follows each layer where known."""

    chain: tuple[int, ...]
    steps: Steps
    weights: Weights
    rest: list[CompletionRows] | None


def only_chain(problem: Problem) -> tuple[int, ...] | None:
    """The chain that all micro-batches walk, None where there are several."""
    chains = [*walked_chains(problem)]
    return chains[0] if len(chains) == 1 else None


def all_steps(problem: Problem, chain: tuple[int, ...]) -> ModelledSteps | None:
    """The steps of a chain with all of its stages."""
    return modelled_steps(problem, Paths(problem), chain, owner_of(problem, chain, chain))


def order_count(problem: Problem) -> int | None:
    """About how many orders are looked at with one for each state; None where orders of steps say nothing."""
    chain = only_chain(problem)
    if chain is None or problem.view is None or problem.view.blocks:
        return None
    return 2 * len(chain) * len(problem.microbatches_of[chain[0]]) * state_count(problem, chain)


def diagram_of(problem: Problem, stop: Event) -> Diagram | None:
    """None where there is more than one chain, or numbers grow too large."""
    chain = only_chain(problem)
    kept = None if chain is None else all_steps(problem, chain)
    if chain is None or kept is None:
        return None
    steps, weights = without_blocks(kept.steps), weights_of(problem, chain, kept.steps)
    # Weight passes that wait here take as long as they do, even where a full backward would take less.
    steps = steps._replace(longest=weights.longest())
    return Diagram(chain, steps, weights, completion(steps, DIAGRAMS.most_numbers, stop))


def step_order(diagram: Diagram, width_of: Callable[[int, int], int], below: int = NEVER) -> list[Taken] | None:
    """The best order met; None where it is ended, or where none of those kept can end below a value.

    `width_of` says how many orders of a state stay, after so many steps and with so many states; 0 ends it.
    """
    (_, steps, weights, rest), done = diagram, 0
    devices = len(steps.room)
    keys, first = np.zeros(1, np.int64), np.array([0, 1], np.int64)
    labels = np.zeros((1, steps.slots + 3 * devices + len(weights.ticks)), np.int64)
    history: list[tuple[Numbers, Numbers]] = []
    least, end = NEVER, (-1, -1, -1)
    while len(keys):
        width = width_of(done, len(keys))
        if not width:
            return None
        done += 1
        ways = _ways(rest, done, steps)
        found = longer(keys, first, labels, steps, weights, done - 1, *ways, below)
        keys, labels, before, taken, ended, last, step = found
        if ended < least:
            least, end = ended, (done - 1, last, step)
        order = np.argsort(keys, kind="stable")
        keys, labels = keys[order], labels[order]
        keys, first, kept = best_of(keys, labels, width, steps, *ways)
        labels, kept = labels[kept], order[kept]
        history.append((before[kept], taken[kept]))
    return None if least == NEVER else _traced(history[: end[0]], end[1], end[2])


def _ways(rest: Sequence[CompletionRows] | None, done: int, steps: Steps) -> CompletionRows:
    """Completion rows of the states after `done` steps; without states if unknown."""
    if rest is None or done >= len(rest):
        nothing = np.full((1, steps.slots + 2 * len(steps.room)), NOTHING, np.int32)
        return CompletionRows(np.empty(0, np.int64), np.array([0, 1], np.int64), nothing)
    return rest[done]


def _traced(history: Sequence[tuple[Numbers, Numbers]], label: int, step: int) -> list[Taken]:
    """The steps that lead to a label, and one more."""
    found = [step]
    for before, taken in reversed(history):
        found.append(int(taken[label]))
        label = before[label]
    return [_taken(one) for one in reversed(found)]


def _taken(code: int) -> Taken:
    step, choice = divmod(code, MODES * DELAYS)
    return Taken(step, choice % DELAYS, choice >= DELAYS)
