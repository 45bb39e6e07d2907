"""The passes of a tiny problem as numbers and arrays, as the exhaustive search takes them."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

import numpy as np

from pipesched.problem.passes import BW, B, F, Pass, W
from pipesched.problem.problem import Problem


class Passes:
    """The passes with one choice of full backwards, as numbers in an order in which each stands behind its needs."""

    def __init__(self, problem: Problem, fused: frozenset[tuple[int, int]]) -> None:
        self.problem, stages = problem, problem.stages
        needs: dict[Pass, list[tuple[Pass, int]]] = {}
        for walk in problem.placement.chains:
            for j in problem.microbatches_of[walk[0]]:
                needs |= dict(self._needs(walk, j, fused))
        self.passes = list(needs)
        number = {p: n for n, p in enumerate(self.passes)}
        self.needs = np.full((len(needs), 2), -1)
        self.lags = np.zeros((len(needs), 2), np.int64)
        for p, before in needs.items():
            for k, (q, lag) in enumerate(before):
                self.needs[number[p], k], self.lags[number[p], k] = number[q], lag
        ticks = {F: "forward", B: "backward", W: "weight", BW: "fused"}
        own = [getattr(stages[p.stage], ticks[p.kind]) * self._scale(p.microbatch) for p in self.passes]
        self.ticks = np.array(list(map(int, own)), np.int64)
        self.block = np.full(len(needs), -1)
        self.least = self.ticks.copy()
        if problem.overlaps:
            self._blocks([stage.overlapped for stage in stages if stage.overlapped is not None])

    def _scale(self, j: int) -> Fraction:
        """The factor on times and memory of a micro-batch."""
        return self.problem.microbatch_scale[j] if self.problem.microbatch_scale else Fraction(1)

    def _needs(
        self, stages: tuple[int, ...], j: int, fused: frozenset[tuple[int, int]]
    ) -> Iterator[tuple[Pass, list[tuple[Pass, int]]]]:
        """What each pass of a micro-batch waits for, and for how many ticks after its end."""
        where, links = self.problem.placement.stage_device, self.problem.links

        def lag(one: int, following: int, back: bool = False) -> int:
            """From a stage to the next on its chain, or back."""
            here, there = (where[one], where[following])[:: -1 if back else 1]
            if here == there:
                return 0
            return int((self.problem.stages[one].transfer + (links[here][there] if links else 0)) * self._scale(j))

        for place, s in enumerate(stages):
            before = stages[place - 1 : place] if place else ()
            yield Pass(F, s, j), [(Pass(F, one, j), lag(one, s)) for one in before]
        for place in reversed(range(len(stages))):
            s, after = stages[place], stages[place + 1 : place + 2]
            gradients = [(Pass(BW if (one, j) in fused else B, one, j), lag(s, one, back=True)) for one in after]
            yield Pass(BW if (s, j) in fused else B, s, j), [(Pass(F, s, j), 0), *gradients]
        for s in stages:
            if (s, j) not in fused:
                yield Pass(W, s, j), [(Pass(B, s, j), 0)]

    def _blocks(self, overlapped: list[int]) -> None:
        """How long a forward runs as one with a full backward of its device, and the least that both then take."""
        mates = self.problem.placement.stages_of
        for n, p in enumerate(self.passes):
            if p.kind is F:
                self.block[n] = overlapped[p.stage]
                self.least[n] = min(self.ticks[n], overlapped[p.stage])
            elif p.kind is BW:
                self.block[n] = -2
                self.least[n] = min(self.ticks[n], *(overlapped[s] for s in mates[self.problem.device(p)]))

    def least_work(self, here: list[int]) -> int:
        """What passes of one device take at least; a full backward may be in a forward's block."""
        blocks = self.block.max(initial=-1) >= 0
        return sum(0 if blocks and self.passes[n].kind is BW else int(self.least[n]) for n in here)

    def before(self, here: np.ndarray) -> np.ndarray:
        """For each pass the passes of its device that surely come first, as bits."""
        bits = np.zeros(len(self.passes), np.int64)
        waits = [set(row[row >= 0].tolist()) for row in self.needs]
        for n in range(len(self.passes)):
            waits[n] |= {r for q in waits[n] for r in waits[q]}
        number = {self.passes[n]: n for n in here.tolist()}
        for p, n in number.items():
            first = {number[q] for q in number if self._comes_first(q, p)}
            bits[n] = sum(1 << q for q in (waits[n] | first) & set(here.tolist()))
        return bits

    def _comes_first(self, q: Pass, p: Pass) -> bool:
        """Whether q is of an earlier micro-batch and must be first: alike ones enter in turn, or the order is fixed."""
        if (
            q.stage != p.stage
            or q.microbatch >= p.microbatch
            or W in (p.kind, q.kind)
            or (p.kind is F) != (q.kind is F)
        ):
            return False
        alike = self._scale(p.microbatch) == self._scale(q.microbatch)
        entries = {stages[0] for stages in self.problem.placement.chains}
        return bool(self.problem.queues) or (p.kind is F and p.stage in entries and alike)

    def memory(self, p: Pass) -> tuple[int, int]:
        """What a pass needs when it starts, and what is held more than before when it has ended."""
        stage, scale = self.problem.stages[p.stage], self._scale(p.microbatch)
        taken, freed = int(stage.activation * scale), int(stage.freed * scale)
        if p.kind is B:
            return max(0, -freed), -freed
        return {F: (taken, taken), BW: (0, -taken), W: (0, freed - taken)}[p.kind]
