"""Beam search over all orders of a chain's steps on all its devices, with `width` partial orders for each state.

A step is a forward or backward of one stage.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from threading import Event
from typing import NamedTuple

import numpy as np

from pipesched.problem.problem import Problem
from pipesched.problem.quantities import StageId, Ticks
from solver.bounds.analytic.critical_paths import Paths
from solver.diagram.compile import compiled_within
from solver.diagram.completion import CompletionRows, completion
from solver.diagram.layers import Layer
from solver.diagram.model import Arcs, Children, ReducedLayer
from solver.diagram.modelled_stages import owner_of, state_count, walked_chains
from solver.diagram.modelled_steps import modelled_steps
from solver.diagram.params import DIAGRAMS
from solver.diagram.steps import NEVER, NOTHING, ModelledSteps, Numbers, StepId, Steps, without_blocks
from solver.step_orders.labels import DELAYS, MODES, best_of, longer
from solver.step_orders.weights import Weights, weights_of


class Taken(NamedTuple):
    """One step of an order: its index on a micro-batch's path along the chain and back.

    `delay` is the number of weight passes that run before it in addition to those that end in time for it. With `full`
    the step is a full backward.
    """

    step: StepId
    delay: int
    full: bool = False


class Diagram(NamedTuple):
    """The only chain (stages in order), its steps on all devices, weight passes, and completion rows by layer.

    `completions` is None if the completion rows take too much memory; no order is then pruned.
    """

    chain: tuple[StageId, ...]
    steps: Steps
    weights: Weights
    completions: list[CompletionRows] | None


def only_chain(problem: Problem) -> tuple[StageId, ...] | None:
    """Return the chain (stages in order) that all micro-batches traverse; None if there are several."""
    chains = [*walked_chains(problem)]
    return chains[0] if len(chains) == 1 else None


def all_steps(problem: Problem, chain: tuple[StageId, ...]) -> ModelledSteps | None:
    """Return the model of a chain's steps with all of its stages kept; None if its numbers grow too large."""
    return modelled_steps(problem, Paths(problem), chain, owner_of(problem, chain, chain))


def order_count(problem: Problem) -> int | None:
    """Return about how many labels a search expands that keeps one per state; None if the search does not apply.

    It applies to problems of plain passes with one chain and without overlapped blocks.
    """
    chain = only_chain(problem)
    if chain is None or problem.view is None or problem.view.blocks:
        return None
    return 2 * len(chain) * len(problem.microbatches_of[chain[0]]) * state_count(problem, chain)


def diagram_of(problem: Problem, stop: Event) -> Diagram | None:
    """Return the decision diagram of a problem's steps; None if it has several chains, or if numbers grow too large."""
    chain = only_chain(problem)
    kept = None if chain is None else all_steps(problem, chain)
    if chain is None or kept is None:
        return None
    steps, weights = without_blocks(kept.steps), weights_of(problem, chain, kept.steps)
    # Weight passes that wait here take as long as they do, even where a full backward would take less.
    steps = steps._replace(longest=weights.longest())
    return Diagram(chain, steps, weights, completion(steps, DIAGRAMS.most_numbers, stop))


class _Labels(NamedTuple):
    """Labels with the key of their state, the index of their parent in the layer before, and the code of their step.

    `taken` has the codes of steps.
    """

    keys: Numbers
    labels: Numbers
    before: Numbers
    taken: Numbers

    @property
    def size(self) -> int:
        """Return the number of labels."""
        return len(self.keys)


class _StepOrders:
    """Restricted decision diagram of the orders of all steps of a chain: at most `width` labels of a state are kept.

    Labels that cannot end before `threshold` ticks are pruned.
    """

    def __init__(self, diagram: Diagram, width: int, threshold: Ticks) -> None:
        _, self._steps, self._weights, self._completions = diagram
        self._width, self._threshold = width, threshold
        times = self._steps.slots + 3 * len(self._steps.room) + len(self._weights.ticks)
        self.root = Layer(np.zeros(1, np.int64), np.array([0, 1], np.int64), np.zeros((1, times), np.int64))

    def expanded(self, layer: Layer, done: int) -> Iterator[Children]:
        """Yield all children of a layer at once; `done` is the number of steps before it."""
        completion_rows = _completion_rows_at(self._completions, done + 1, self._steps)
        *columns, ended, last, step = longer(
            *layer, self._steps, self._weights, done, *completion_rows, self._threshold
        )
        yield Children((_Labels(*columns),), len(columns[0]), ended if ended < NEVER else None, (last, step))

    def reduced(self, parts: Sequence[_Labels], done: int) -> ReducedLayer:
        """Return the layer after `done` steps, made of the labels in `parts`: the best non-dominated ones of each
        state.

        The layer has the arcs to the labels' parents.
        """
        keys, labels, before, taken = parts[0]
        order = np.argsort(keys, kind="stable")
        keys, labels = keys[order], labels[order]
        keys, first, stay = best_of(
            keys, labels, self._width, self._steps, *_completion_rows_at(self._completions, done, self._steps)
        )
        chosen = order[stay]
        arcs = Arcs(np.full(len(stay), done - 1), before[chosen], taken[chosen])
        return ReducedLayer(Layer(keys, first, labels[stay]), arcs=arcs)


def step_order(diagram: Diagram, width: int, stop: Event, threshold: Ticks = NEVER) -> list[Taken] | None:
    """Return the steps of the best order found, with `width` partial orders kept for each state.

    None if stopped, or if no order found ends before `threshold` ticks.
    """
    found = compiled_within(_StepOrders(diagram, width, threshold), stop)
    return None if found.value is None else [_taken(int(code)) for code in found.moves]


def _completion_rows_at(completions: Sequence[CompletionRows] | None, done: int, steps: Steps) -> CompletionRows:
    """Return the completion rows (cost-to-go of the times of a label) of the states after `done` steps.

    If they are unknown the result has no row for any state.
    """
    if completions is None or done >= len(completions):
        nothing = np.full((1, steps.slots + 2 * len(steps.room)), NOTHING, np.int32)
        return CompletionRows(np.empty(0, np.int64), np.array([0, 1], np.int64), nothing)
    return completions[done]


def _taken(code: int) -> Taken:
    step, choice = divmod(code, MODES * DELAYS)
    return Taken(step, choice % DELAYS, choice >= DELAYS)
