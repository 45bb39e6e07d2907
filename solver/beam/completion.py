"""Completion bounds of partial orders of one chain: orders that cannot end before V are pruned, others ranked by them.

Relaxed diagrams with blocks on all devices of the chain, compiled backwards with one label per state, give the
cost-to-go of each time of an order.
"""

from __future__ import annotations

from threading import Event
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pipesched.compiled import inner
from pipesched.problem.problem import Problem
from pipesched.problem.quantities import Ticks
from solver.beam.children import MATE
from solver.beam.nodes import offsets
from solver.beam.tables import Numbers, StepTables
from solver.bounds.analytic.critical_paths import Paths
from solver.diagram.completion import CompletionRows, Short, completion, numbers_of
from solver.diagram.modelled_stages import devices_of, owner_of, walked_chains
from solver.diagram.modelled_steps import modelled_steps
from solver.diagram.params import DIAGRAMS
from solver.diagram.steps import NOTHING

_LEFT_OUT = np.inf


class CompletionBounds(NamedTuple):
    """Completion bounds of all states, by layer (number of passes run).

    `layers` has the completion rows of each layer. The key of a state in it is the sum over steps of `raises` times how
    many micro-batches have taken the step. `number[d]` is the place of device d among the devices that such a row has
    times of, -1 if it has no stage. Orders that cannot end before `value` ticks are pruned; none are if it is 2**62.
    """

    layers: list[CompletionRows]
    raises: Numbers
    number: Numbers
    value: Ticks


def completion_bounds(problem: Problem, stop: Event) -> CompletionBounds | None:
    """Return the completion bounds of a plain problem of one chain, with a `value` that prunes nothing.

    None if several chains have micro-batches, if the diagram has too many states, if its numbers are too large, if
    nothing fits the memory, or after a stop.
    """
    chains = [*walked_chains(problem)]
    if len(chains) != 1:
        return None
    kept = modelled_steps(problem, Paths(problem), chains[0], owner_of(problem, chains[0], chains[0]))
    if kept is None or numbers_of(kept) > DIAGRAMS.completion_numbers * DIAGRAMS.most_numbers:
        return None
    layers = completion(kept.steps, DIAGRAMS.most_numbers, stop)
    if layers is None:
        return None
    devices = devices_of(problem, kept.stages)
    number = np.full(problem.devices, -1, np.int64)
    number[list(devices)] = np.arange(len(devices))
    return CompletionBounds(layers, kept.steps.raises, number, 2**62)


def rank_by_completion(
    nodes: Numbers, moves: Numbers, ranks: NDArray[np.float64], done: int, tables: StepTables, bounds: CompletionBounds
) -> None:
    """Add the completion bound of each child, in ticks, to its rank in `ranks`; their parents have run `done` passes.

    A rank becomes infinite if its bound reaches `bounds.value`, or if no order that begins so ends within memory.
    Arrays have a row for each child: `nodes` are the children, `moves` the moves that lead to them.
    """
    for further in (1, 2):
        if done + further < len(bounds.layers):
            completion_rows = bounds.layers[done + further]
            chosen = further == 2
            rank_children(
                nodes, moves, ranks, chosen, *completion_rows, tables, bounds.raises, bounds.number, bounds.value
            )


@inner
def rank_children(
    nodes: Numbers,
    moves: Numbers,
    ranks: NDArray[np.float64],
    blocks: bool,
    keys: Numbers,
    first: Numbers,
    rows: Short,
    tables: StepTables,
    raises: Numbers,
    number: Numbers,
    value: int,
) -> None:
    """Add completion bounds to the ranks of children made by a block (`blocks` True) or by a step (False), in place.

    `nodes`, `moves` and `ranks` have a row for each child. `keys`, `first` and `rows` are the completion rows of the
    layer that these children are in: state n, with key `keys[n]`, has its ticks to go in `rows[first[n]]`. A node's key
    is the sum over steps of `raises` times the number of micro-batches that have taken the step. `number` is by device
    its place among the devices of such a row, -1 for none. A rank becomes infinite if the child's state has no row, as
    then no order ends within memory, or if its bound is not below `value` ticks.
    """
    steps = tables.device.shape[0]
    for child in range(nodes.shape[0]):
        if (moves[child, MATE] >= 0) != blocks:
            continue
        row = nodes[child]
        key = np.int64(0)
        for step in range(steps):
            key += raises[step] * row[step]
        state = np.searchsorted(keys, key)
        if state >= keys.shape[0] or keys[state] != key or first[state] == first[state + 1]:
            ranks[child] = _LEFT_OUT  # nothing that begins so comes to an end
            continue
        least = _least(row, rows[first[state]], tables, number)
        ranks[child] = ranks[child] + least if least < value else _LEFT_OUT


@inner
def _least(row: Numbers, cost_to_go: Short, tables: StepTables, number: Numbers) -> np.int64:
    """Return a lower bound in ticks on the end of all orders that begin as a node.

    That is the largest of its times plus cost-to-go. The times are those when micro-batches in flight end the last pass
    of the node, when devices are free, and when they are free after all pending weight passes. `row` is the node;
    `cost_to_go` has the ticks to the end after each of these times in this order, micro-batches from the oldest on, and
    `number` is by device its place among the devices there, -1 for a device without a stage.
    """
    ends, free, waiting, _, _ = offsets(tables)
    steps, devices = tables.device.shape[0], tables.room.shape[0]
    through, kept, found = row[steps - 1], 0, np.int64(NOTHING)
    for device in range(devices):
        kept = max(kept, number[device] + 1)
    flying = cost_to_go.shape[0] - 2 * kept
    for one in range(through, row[0]):
        step = 0
        while row[step + 1] > one:
            step += 1
        found = max(found, row[ends + tables.first[step] + one] + cost_to_go[one - through])
    for device in range(devices):
        if number[device] < 0:
            continue
        now = row[free + device]
        found = max(found, now + cost_to_go[flying + number[device]])
        for at in range(tables.since[device], tables.since[device + 1]):
            now += row[waiting + tables.waits[at]] * tables.weight[tables.waits[at]]
        found = max(found, now + cost_to_go[flying + kept + number[device]])
    return found
