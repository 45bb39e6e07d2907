"""Search over the rules of the compiled list scheduler: in-flight limits of the stages, and waiting times.

The number in flight on a stage follows from Little's law: a micro-batch's time from there to the end and back, divided
by the time between two micro-batches. Schedules are far more sensitive to it than to priorities. So a few percentages
of it, each for all stages, are tried in order. Then the best rules are changed at random, on one stage or some; a
change is kept if the schedule gets no worse.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from pipesched.problem.problem import Problem
from solver.construction.lists.layout import (
    AHEAD,
    BACKWARD,
    BLOCKS,
    DEEPEST,
    FORWARD,
    LIMITED,
    MOST,
    PATIENCE,
    RANKED,
    RANKS,
    ROOM,
    RULE_COLUMNS,
    STARTS,
    TICKS,
    WEIGHT,
    YIELDS,
    Rules,
    Shop,
)
from solver.construction.lists.tables import ANY
from solver.construction.policy import LISTS


class Simple(NamedTuple):
    """Rules of the list scheduler that are the same on all stages.

    `share` limits the micro-batches in flight, in percent of the number by Little's law, None without limit; `more`
    micro-batches are added to that. `patience` is how long weight passes wait, in percent of a weight pass, `yields`
    how long forwards wait, in percent of a forward.
    """

    share: int | None
    more: int
    yields: int
    patience: int

    def each_number(self) -> Iterator[list[Simple]]:
        """Yield four lists of rules, one for each field: the field takes all values that are tried, the others stay.

        The fields are in order of importance: share, more, patience, yields.
        """
        yield [self._replace(share=share) for share in LISTS.in_flight]
        yield [self._replace(more=more) for more in range(LISTS.most_extra + 1)]
        yield [self._replace(patience=patience) for patience in LISTS.waits]
        yield [self._replace(yields=yields) for yields in LISTS.waits]


# The search begins at the better of these rules.
FIRST_RULES = (
    Simple(None, 0, 0, LISTS.first_wait),
    Simple(100, LISTS.most_extra, LISTS.first_wait, LISTS.first_wait),
)


class RuleMaker:
    """Maker of rules for the list scheduler.

    It makes equal ones on all stages, random ones by ranks, or others by a random change. With `split` backwards run as
    B and W, as they do in `shop`, which are the arrays of `problem`.
    """

    def __init__(self, problem: Problem, shop: Shop, split: bool) -> None:
        self._shop, self._split = shop, split
        self._ticks = shop.stages[:, TICKS : TICKS + 3]
        self._in_flight = _in_flight(problem, shop)
        self._first = [chain[0] for chain in problem.placement.chains]
        device = shop.stages[:, 0]
        limited = (shop.devices[device, LIMITED] != 0) & (shop.stages[:, STARTS] > 0)
        room = shop.devices[device, ROOM] // np.maximum(1, shop.stages[:, STARTS])
        # The place of each stage among those of its device.
        self._chunk = np.zeros(len(device), np.int64)
        for stages in problem.placement.stages_of:
            self._chunk[list(stages)] = np.arange(len(stages))
        ample = np.ceil(LISTS.in_flight_ceiling * self._in_flight).astype(np.int64) + LISTS.most_extra
        self._ceiling = np.where(limited, np.maximum(1, room), ample)
        self._ahead = problem.microbatches

    def simple(self, rule: Simple) -> Rules:
        """Return the limits and waiting times of every stage that follow from the percentages of `rule`.

        The percentages are the same on all stages; limits, in micro-batches, and waiting times, in ticks, are not: they
        are shares of each stage's own number by Little's law and of its own passes.
        """
        rules = np.zeros((len(self._ticks), RULE_COLUMNS), np.int64)
        rules[:, MOST] = ANY
        if rule.share is not None:
            rules[:, MOST] = np.maximum(1, np.floor(self._in_flight * rule.share / 100 + rule.more + 1e-9))
        rules[:, PATIENCE] = self._ticks[:, WEIGHT] * rule.patience // 100
        rules[:, YIELDS] = self._ticks[:, FORWARD] * rule.yields // 100
        return Rules(np.array((self._split, 1, 0, 0, -1), np.int64), rules)

    def ranked(self, random: np.random.Generator) -> Rules:
        """Return random rules by which the passes of a device are chosen by rank.

        The ranks are the same on all devices. If micro-batches in flight are limited, it is on the first stage of a
        chain, to half to twice the number of devices.
        """
        devices = len(self._shop.devices)
        rules = np.zeros((len(self._ticks), RULE_COLUMNS), np.int64)
        rules[:, MOST] = ANY
        if random.integers(2):
            rules[self._first, MOST] = random.integers(max(2, devices // 2), 2 * devices + 1)
        rules[:, PATIENCE] = self._ticks[:, WEIGHT] * random.choice(LISTS.waits) // 100
        rules[:, YIELDS] = self._ticks[:, FORWARD] * random.choice(LISTS.waits) // 100
        ranks = random.permutation(2 * (self._chunk.max() + 1)).reshape(2, -1)
        rules[:, RANKS], rules[:, RANKS + 1] = ranks[0, self._chunk], ranks[1, self._chunk]
        rules[:, AHEAD] = -self._ahead * self._chunk * random.integers(2)
        return Rules(np.array((self._split, random.integers(2), 0, 1, -1), np.int64), rules)

    def changed(self, rules: Rules, random: np.random.Generator) -> Rules:
        """Return rules with a few random changes, each of one stage or of some with consecutive numbers.

        `rules` stay as they are.
        """
        flags, table = rules.flags.copy(), rules.stages.copy()
        stages = len(table)
        kinds = [MOST, PATIENCE, YIELDS, *((RANKS, RANKS + 1, AHEAD) if flags[RANKED] else ())]
        for _ in range(random.integers(1, LISTS.most_changes + 1)):
            what, first = random.choice(kinds), random.integers(stages)
            several = slice(first, first + (1 + random.integers(stages) if random.integers(2) else 1))
            if what == MOST:
                ceiling = self._ceiling[several]
                step = LISTS.most_in_flight_step
                moved = np.minimum(table[several, MOST], ceiling) + random.integers(-step, step + 1)
                table[several, MOST] = np.clip(moved, 1, ceiling)
            elif what == PATIENCE and self._split:
                table[several, PATIENCE] = self._ticks[several, WEIGHT] * random.choice(LISTS.waits) // 100
            elif what in (RANKS, RANKS + 1):
                table[several, what] = random.integers(2 * self._chunk.max() + 2)
            elif what == AHEAD:
                table[several, AHEAD] = random.choice((-self._ahead, 0, self._ahead))
            else:
                table[several, YIELDS] = (
                    self._ticks[several, FORWARD] * random.choice(LISTS.waits) // random.choice((-100, 100))
                )
        if not random.integers(stages):
            flags[DEEPEST] = 1 - flags[DEEPEST]
        if flags[BLOCKS] >= 0 and not random.integers(stages):
            flags[BLOCKS] = random.choice(LISTS.waits)
        return Rules(flags, table)


def _in_flight(problem: Problem, shop: Shop) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Return by stage the micro-batches in flight if nothing waits except for the bottleneck: Little's law.

    That is, not rounded, the time from the stage to the end and back, over the time that the bottleneck, the busiest
    device or memory, needs for a micro-batch.
    """
    stages = shop.stages
    trip = np.zeros(len(stages))
    for chain in problem.placement.chains:
        path, after = 0.0, -1
        for s in reversed(chain):
            path += stages[s, TICKS + FORWARD] + stages[s, TICKS + BACKWARD]
            if after >= 0:
                path += problem.lag(s, after) + problem.lag(after, s)
            trip[s], after = path, s
    apart = 1.0
    for d, of_device in enumerate(problem.placement.stages_of):
        there = list(of_device)
        apart = max(apart, float(stages[there, TICKS : TICKS + 3].sum()))
        if shop.devices[d, LIMITED] and shop.devices[d, ROOM] > 0:
            apart = max(apart, float((trip[there] * stages[there, STARTS]).sum() / shop.devices[d, ROOM]))
    shares: np.ndarray[tuple[int], np.dtype[np.float64]] = trip / apart
    return shares
