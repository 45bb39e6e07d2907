"""The exact optimum of tiny problems by trying every order; the span to the fraction of a tick.

Knows what the contract says, and neither simulator nor solver nor the tests' slower search. No order is left out: not
micro-batch order on a stage, nor fused or split backwards, blocks, or weight passes run at any time. Micro-batches of a
chain that are alike are numbered as they start on the chain's first stage.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import chain, combinations
from math import floor

import numpy as np

from benchmarks.proofs.exhaustive.device_orders import device_orders, longest_paths
from benchmarks.proofs.exhaustive.passes import Passes
from benchmarks.proofs.exhaustive.values import PARTS, best_combination
from pipesched.problem.problem import Objective, Problem

# Devices, passes, orders of one device, combinations of orders, and backwards that may run either way, beyond which a
# problem is not tiny.
MOST_DEVICES, MOST_PASSES, MOST_ORDERS, MOST_VALUES, MOST_CHOICES = 3, 60, 4_000, 20_000, 8
# The capacity of a device without limit.
_ROOM = 2**40


class NotTiny(Exception):
    """There are too many orders to try them all."""


def least_value(problem: Problem, objective: Objective, at_most: int) -> Fraction | None:
    """The least value in ticks that any schedule has, if it is at most so much; None if it is more.

    `NotTiny` where that would take too long to find out, and with arcs between chains or collectives, which it
    does not know.
    """
    if problem.devices > MOST_DEVICES or problem.stage_arcs or problem.network.has_collectives:
        raise NotTiny
    least, limit = None, at_most * PARTS
    for fused in _ways_to_fuse(problem):
        found = _best(Passes(problem, fused), objective, limit)
        if found is not None:
            least, limit = Fraction(found, PARTS), found - 1
    return least


def _ways_to_fuse(problem: Problem) -> Iterator[frozenset[tuple[int, int]]]:
    """The backwards (stage, micro-batch) that run in one go, in every way that may be better than another."""
    pairs = [(s, j) for s in range(problem.placement.stages) for j in problem.microbatches_of[s]]
    if not problem.splittable:
        return iter([frozenset(pairs)])
    open_ = [(s, j) for s, j in pairs if not _split_is_as_good(problem, s)]
    if len(open_) > MOST_CHOICES:
        raise NotTiny
    return map(frozenset, chain.from_iterable(combinations(open_, n) for n in range(len(open_) + 1)))


def _split_is_as_good(problem: Problem, stage: int) -> bool:
    """Whether B with its W right behind it can stand for every full backward: as short, with no more memory."""
    own = problem.stages[stage]
    assert own.weight is not None
    return own.backward + own.weight <= own.fused and not problem.overlaps and own.freed >= 0


def _best(of: Passes, objective: Objective, limit: int) -> int | None:
    """The least value of these passes, at most `limit`; both in parts of a tick."""
    if len(of.passes) > MOST_PASSES:
        raise NotTiny
    held = [
        [n for n, p in enumerate(of.passes) if of.problem.device(p) == device] for device in range(of.problem.devices)
    ]
    if any(of.least_work(here) * PARTS > limit for here in held):
        return None
    paths = longest_paths(of.least, of.needs, of.lags)
    orders: list[np.ndarray] = []
    for device, here in enumerate(held):
        found = _orders(of, device, np.array(here, np.int64), paths, objective, floor(Fraction(limit, PARTS)))
        if not len(found):
            return None
        orders.append(found)
    together = np.full((len(orders), max(map(len, orders)), max(o.shape[1] for o in orders)), -1)
    for device, found in enumerate(orders):
        together[device, : len(found), : found.shape[1]] = found
    counts = np.array([len(found) for found in orders])
    costs = of.ticks, of.least, of.block, of.needs, of.lags
    span = objective is Objective.SPAN
    best = best_combination(together, counts, np.argsort(counts), costs, span, limit, MOST_VALUES)
    if best == -2:
        raise NotTiny
    return None if best < 0 else int(best)


def _orders(
    of: Passes, device: int, here: np.ndarray, paths: np.ndarray, objective: Objective, limit: int
) -> np.ndarray:
    """Every order of a device's passes that its memory allows, each a row of slots."""
    if not len(here):
        return np.full((1, 1), -1)
    head = paths.max(axis=0) if objective is Objective.MAKESPAN else np.zeros(len(of.passes), np.int64)
    capacity = of.problem.room[device]
    takes, keeps = (np.array(column, np.int64) for column in zip(*map(of.memory, of.passes), strict=True))
    found = np.empty((MOST_ORDERS, len(here)), np.int64)
    room = _ROOM if capacity is None else capacity
    before = of.before(here)
    arrays = of.ticks, of.least, of.block, takes, keeps, paths, head
    count = device_orders(here, before, *arrays, room, limit, found)
    if count < 0:
        raise NotTiny
    return found[:count]
