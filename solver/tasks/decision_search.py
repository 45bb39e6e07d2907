"""Simulated annealing over orders of passes and what they offload or recompute: list scheduling under changed orders.

A state is the order of passes of every device, copies and recomputations among them. A move keeps, offloads or
recomputes another activation, or moves a pass; memory is taken in the order's turn, so every state that is let in fits
on any timing. Ranks are the starts of the state before, so that what a move does not touch stays as it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import exp
from random import Random

from formulations.jobs.jobs import Jobs
from formulations.jobs.schedule_of_starts import schedule_of_starts
from pipesched.errors import Deadlock
from pipesched.problem.passes import BW, OFFLOAD, RELOAD, B, F, Pass, W
from pipesched.schedule.schedule import Schedule, schedule_of
from solver.tasks.dispatch import dispatched, memory_waits
from solver.tasks.job_graph import graph_of, running_of
from solver.tuning import KEPT

Orders = list[list[Pass]]


class DecisionSearch:
    """`best` is a schedule that ends before those so far, `ends` when the first of all ends, in steps."""

    def __init__(self, jobs: Jobs, starts: Mapping[int, int], seed: int) -> None:
        self._jobs, self._random = jobs, Random(seed)
        first: dict[Pass, int] = {}
        for n, start in starts.items():
            p = jobs.jobs[n].task.of
            first[p] = min(start, first.get(p, start))
        self._orders: Orders = [[] for _ in range(jobs.problem.devices)]
        for p in sorted(first, key=lambda p: first[p]):
            self._orders[jobs.problem.device(p)].append(p)
        self._rank = {p: float(start) for p, start in first.items()}
        self._options = jobs.problem.network.options
        self._able = [
            (device, p.stage, p.microbatch)
            for device, order in enumerate(self._orders)
            for p in order
            if p.kind is F and len(self._options.get(p.stage, ())) > 1
        ]
        self._now = self.ends = max(start + jobs.jobs[n].steps for n, start in starts.items())
        self.best: Schedule | None = None

    def step(self, temperature: float) -> bool:
        """Try one move; whether the best got better. The temperature is a share of the schedule's end."""
        orders = [list(order) for order in self._orders]
        self._move(orders)
        found = self._timed(orders)
        if found is None:
            return False
        ends, starts = found
        worse = (ends - self._now) / max(1, self._now)
        if worse > 0 and not (temperature > 0 and self._random.random() < exp(-worse / temperature)):
            return False
        if ends < self.ends:
            safe = schedule_of_starts(self._jobs, starts, "optimised")
            if safe is None:
                return False
            self.best = safe
        better, self.ends = ends < self.ends, min(ends, self.ends)
        self._orders, self._now = orders, ends
        self._rank = {}
        for n, start in starts.items():
            p = self._jobs.jobs[n].task.of
            self._rank[p] = min(float(start), self._rank.get(p, float(start)))
        return better

    def _timed(self, orders: Orders) -> tuple[int, dict[int, int]] | None:
        """The end and the starts of these orders; None where passes wait for each other in a cycle."""
        jobs, schedule = self._jobs, schedule_of(orders)
        try:
            graph = graph_of(jobs, running_of(jobs, schedule), memory_waits(jobs, schedule))
        except Deadlock:
            return None
        if not self._fits(orders):
            return None
        ranks = self._ranks(orders)
        starts = dispatched(graph, {n: ranks[jobs.jobs[n].task.of] for n in graph.running})
        return max(start + jobs.jobs[n].steps for n, start in starts.items()), starts

    def _ranks(self, orders: Orders) -> dict[Pass, float]:
        """The starts of before, raised so that each device's passes rank in their new order."""
        found: dict[Pass, float] = {}
        for order in orders:
            reached = 0.0
            for p in order:
                reached = max(reached + 1e-6, self._rank.get(p, reached))
                found[p] = reached
        return found

    def _fits(self, orders: Orders) -> bool:
        """Whether every device's order holds no more than there is, one pass after the other."""
        problem, network = self._jobs.problem, self._jobs.problem.network
        for device, order in enumerate(orders):
            room, level = problem.room[device], 0
            again = {(p.stage, p.microbatch): network.given_up[p[:2]] for p in order if p[:2] in network.given_up}
            for p in order if room is not None else ():
                at_start, at_end = network.change[p.kind, p.stage]
                level += at_start
                if room is not None and level > room:
                    return False
                level += at_end - (again.get(p[1:], 0) if p.kind is F else 0)
        return True

    def _move(self, orders: Orders) -> None:
        random, draw = self._random, self._random.randrange(3)
        if self._able and draw == 0:
            device, stage, j = random.choice(self._able)
            self._change(orders[device], stage, j)
            return
        order = random.choice([order for order in orders if order])
        at = random.randrange(len(order))
        if draw == 1:
            savers = [n for n, p in enumerate(order) if p.kind not in (F, B, W, BW)]
            at = random.choice(savers) if savers else at
        order.insert(min(len(order) - 1, max(0, at + random.choice((-1, 1)) * random.randint(1, KEPT))), order.pop(at))

    def _change(self, order: list[Pass], stage: int, j: int) -> None:
        """Another way for an activation, its passes put after the forward and some way before the backward."""
        options = self._options[stage]
        held = frozenset(p.kind for p in order if p[1:] == (stage, j) and any(p.kind in option for option in options))
        new = self._random.choice([option for option in options if option != held])
        order[:] = [p for p in order if p[1:] != (stage, j) or p.kind not in held]
        for kind in sorted(new, key=lambda kind: kind is not OFFLOAD):
            self._put(order, Pass(kind, stage, j))

    def _put(self, order: list[Pass], p: Pass) -> None:
        forward = order.index(p._replace(kind=F)) + 1
        if p.kind is OFFLOAD:
            order.insert(forward, p)
            return
        after = order.index(p._replace(kind=OFFLOAD)) + 1 if p.kind is RELOAD else forward
        backward = next(n for n, other in enumerate(order) if other[1:] == p[1:] and other.kind in (B, BW))
        order.insert(max(after, backward - self._random.randint(0, KEPT)), p)
