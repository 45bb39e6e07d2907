"""A problem of whole passes in numbers for the compiled search, read off its definition in `task_brute_force.Game`."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from pipesched.problem.passes import BW, B, F, Pass, PassKind, Slot, Task, W
from pipesched.problem.problem import Problem
from tests.support.exhaustive import limits
from tests.support.exhaustive.choices import ALONE, OF_PAIR, OF_ROLE
from tests.support.exhaustive.limits import Numbers, Passes
from tests.support.task_brute_force import Game, block_ticks

_ROLES: dict[PassKind, int] = {F: limits.F, B: limits.B, W: limits.W, BW: limits.BW}
_KINDS = {role: kind for kind, role in _ROLES.items()}
_NONE = -1


def of_whole_passes(problem: Problem) -> bool:
    """Return True if each pass is one task on one stream, the same for all stages, and there are no activation modes.

    Collectives and transfers on a stream are excluded too.
    """
    own = problem.stages
    tasks = [task for stage in own for _, specs in stage.tasks for task in specs]
    single = all(len(specs) == 1 for stage in own for _, specs in stage.tasks) and not any(t.also for t in tasks)
    streams = {stage.stream for stage in own} | {task.stream for task in tasks}
    more = any(stage.once or stage.gather or stage.offload or stage.recompute for stage in own)
    return single and len(streams) == 1 and not more and problem.resources.transfer_stream is None


class PassesOf:
    """The (stage, micro-batch) pairs of a problem, and its passes as arrays (`numbers`) for the compiled search.

    With `in_order` forwards and backwards of each stage run in the order of micro-batches. Otherwise micro-batches that
    are alike are numbered as they start: they may change places.
    """

    def __init__(self, problem: Problem, in_order: bool) -> None:
        chains = problem.placement.chains
        self.pairs = [(s, j) for walked in chains for j in problem.microbatches_of[walked[0]] for s in walked]
        self._number = {pair: k for k, pair in enumerate(self.pairs)}
        self._problem = problem
        self._games = [Game(problem, frozenset(self.pairs))]
        self._games += [Game(problem, frozenset())] if problem.splittable else []
        lags = {(self._node(one), self._node(other)): lag for g in self._games for (one, other), lag in g.lags.items()}
        sequence, ancestors = _sorted(3 * len(self.pairs), lags)
        self.numbers = self._numbers(lags, sequence, self._needs(ancestors, in_order))

    def _node(self, task: Task) -> int:
        kind, stage, j = task.of
        return 3 * self._number[stage, j] + (limits.B if kind is BW else _ROLES[kind])

    def _needs(self, ancestors: list[int], in_order: bool) -> list[int]:
        """Return for each node a bit set of the nodes of its device that precede it, by dependence or by micro-batch
        number."""
        device = self._problem.placement.stage_device
        here = [
            sum(7 << 3 * k for k, (s, _) in enumerate(self.pairs) if device[s] == d) for d in range(max(device) + 1)
        ]
        needs = [own & here[device[self.pairs[node // 3][0]]] for node, own in enumerate(ancestors)]
        for one, other in self._ordered() if in_order else ():
            for role in (limits.F, limits.B):
                needs[3 * other + role] |= 1 << 3 * one + role
        for one, other in () if in_order else self._alike():
            needs[3 * other] |= 1 << 3 * one
        return needs

    def _ordered(self) -> Iterator[tuple[int, int]]:
        for stage, microbatches in enumerate(self._problem.microbatches_of):
            for one, other in pairwise(microbatches):
                yield self._number[stage, one], self._number[stage, other]

    def _alike(self) -> Iterator[tuple[int, int]]:
        """Yield pairs (k, q) of numbers: a pair of the first stage of a chain, and the next whose micro-batch is of
        equal size.

        Where arcs tie the n-th micro-batches of chains, all chains exchange theirs together, so only the first chain
        counts.
        """
        arcs, scale = self._problem.chain_arcs, self._problem.walks.scale
        if arcs.modules:
            return
        for walked in self._problem.placement.chains[: 1 if arcs.arcs else None]:
            last = dict[object, int]()
            for j in self._problem.microbatches_of[walked[0]]:
                k, size = self._number[walked[0], j], scale[j] if scale else 1
                if size in last:
                    yield last[size], k
                last[size] = k

    def _numbers(self, lags: dict[tuple[int, int], int], sequence: list[int], needs: list[int]) -> Passes:
        """Return all arrays of the problem for the compiled search."""
        count = len(self.pairs)
        ticks, takes, adds = np.full((4, count), _NONE), np.zeros((4, count), int), np.zeros((4, count), int)
        for game in self._games:
            for task, own in game.ticks.items():
                ticks[_ROLES[task.of.kind], self._node(task) // 3] = own
            for holding in game.holdings:
                ((task,), (end,)) = holding.begins, holding.ends
                assert task == end
                at = _ROLES[task.of.kind], self._node(task) // 3
                takes[at], adds[at] = holding.takes, holding.takes - holding.gives
        if not self._problem.overlaps:
            self._leave_out(ticks, takes, adds)
        arcs = [[(one, lag) for (one, other), lag in lags.items() if other == node] for node in sequence]
        rows = [row for own in arcs for row in own]
        device = self._problem.placement.stage_device
        return Passes(
            device=np.array([device[s] for s, _ in self.pairs]),
            ticks=ticks,
            takes=takes,
            adds=adds,
            block=np.array([[self._block(one, other) for other in self.pairs] for one in self.pairs]),
            needs=np.array(needs),
            order=np.array(sequence),
            first=np.array([sum(map(len, arcs[:n])) for n in range(len(arcs) + 1)]),
            before=np.array([one for one, _ in rows], int),
            lag=np.array([lag for _, lag in rows], int),
        )

    def _leave_out(self, ticks: Numbers, takes: Numbers, adds: Numbers) -> None:
        """Mark as absent each full backward that B and then W replace: they end no later, and take no more memory."""
        for k in range(len(self.pairs)):
            split = ticks[limits.B, k] + ticks[limits.W, k]
            most = max(takes[limits.B, k], adds[limits.B, k] + takes[limits.W, k])
            if ticks[limits.W, k] >= 0 and split <= ticks[limits.BW, k] and most <= takes[limits.BW, k]:
                ticks[limits.BW, k] = _NONE

    def _block(self, one: tuple[int, int], other: tuple[int, int]) -> int:
        """Return the ticks of a block of the forward of one pair and the full backward of another; -1 if there is
        none."""
        (here, _), (there, _) = one, other
        where, stages = self._problem.placement.stage_device, self._problem.stages
        ticks = block_ticks(stages[here], stages[there]) if where[here] == where[there] else None
        return _NONE if ticks is None else ticks

    def orders(self, choices: Numbers) -> tuple[tuple[Slot, ...], ...]:
        """Return the slots of each device, in order, from the choices of a search (negative ones are padding)."""
        found: list[list[Slot]] = [[] for _ in range(self._problem.devices)]
        for choice in (int(one) for one in choices if one >= 0):
            k, mate = choice // OF_PAIR % OF_PAIR, choice % OF_PAIR
            own = Pass(_KINDS[choice // OF_ROLE], *self.pairs[k])
            slot: Slot = (own,) if mate == ALONE else (own, Pass(BW, *self.pairs[mate]))
            found[self._problem.placement.stage_device[self.pairs[k][0]]].append(slot)
        return tuple(map(tuple, found))


def _sorted(nodes: int, lags: dict[tuple[int, int], int]) -> tuple[list[int], list[int]]:
    """Return the nodes in topological order, and for each node a bit set of its ancestors."""
    before: list[set[int]] = [set() for _ in range(nodes)]
    for one, other in lags:
        before[other].add(one)
    sequence, ancestors, done = list[int](), [0] * nodes, set[int]()
    while len(sequence) < nodes:
        ready = [node for node in range(nodes) if node not in done and before[node] <= done]
        assert ready, "passes wait for each other"
        for node in ready:
            ancestors[node] = sum({1 << one for one in before[node]})
            for one in before[node]:
                ancestors[node] |= ancestors[one]
        sequence += ready
        done.update(ready)
    return sequence, ancestors
