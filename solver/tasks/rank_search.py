"""Simulated annealing over ranks of jobs: list scheduling with slightly other ranks, justified from both ends.

Ranks are the starts of the schedule so far (random keys), moved for some types of task, for a while, or for a few jobs.
Justification runs the schedule backwards as late as it can, and that again as early as it can (Valls, Ballestín and
Quintanilla, European Journal of Operational Research 165, 2005).
"""

from __future__ import annotations

from collections.abc import Mapping
from math import exp
from random import Random

from formulations.tasks.jobs import Jobs
from solver.tasks.dispatch import dispatched
from solver.tasks.job_graph import JobArc, JobGraph, graph_of

# How far ranks move: shares of the time from first start to last end.
_FAR = (0.005, 0.015, 0.05)


class RankSearch:
    """`best` are the starts of the schedule that ends first, `ends` is when; memory keeps the order it has at first."""

    def __init__(self, jobs: Jobs, starts: Mapping[int, int], seed: int) -> None:
        self._jobs, self._random = jobs, Random(seed)
        self._graph = graph_of(jobs, starts, memory_arcs(jobs, starts))
        reverse = reversed(self._graph.sequence)
        self._back = JobGraph(jobs, self._graph.running, self._graph.after, self._graph.before, list(reverse))
        types: dict[tuple[str, int, int], list[int]] = {}
        for n in starts:
            task = jobs.jobs[n].task
            types.setdefault((task.of.kind, task.of.stage, task.part), []).append(n)
        self._types = list(types.values())
        self._now = self.best = dict(starts)
        self._now_ends = self.ends = self._end(starts)

    def step(self, temperature: float) -> bool:
        """Try other ranks; whether the best got better. The temperature is a share of the schedule's end."""
        starts = self._justified(dispatched(self._graph, self._moved()))
        ends = self._end(starts)
        worse = (ends - self._now_ends) / max(1, self._now_ends)
        if worse <= 0 or (temperature > 0 and self._random.random() < exp(-worse / temperature)):
            self._now, self._now_ends = starts, ends
        if ends >= self.ends:
            return False
        self.best, self.ends = starts, ends
        return True

    def _end(self, starts: Mapping[int, int]) -> int:
        return max((start + self._jobs.jobs[n].steps for n, start in starts.items()), default=0)

    def _moved(self) -> dict[int, float]:
        """The ranks of the schedule so far, some of them moved."""
        random, ranks = self._random, {n: float(start) for n, start in self._now.items()}
        far = random.choice(_FAR) * self._now_ends
        kind = random.random()
        if kind < 0.4:
            for _ in range(random.randint(1, 3)):
                by = random.gauss(0, far)
                for n in random.choice(self._types):
                    ranks[n] += by
        elif kind < 0.7:
            since, length = random.uniform(0, self._now_ends), random.uniform(0.02, 0.3) * self._now_ends
            for n, start in self._now.items():
                if since <= start <= since + length:
                    ranks[n] += random.gauss(0, far)
        else:
            for n in random.sample(list(ranks), random.randint(1, min(20, len(ranks)))):
                ranks[n] += random.gauss(0, 2 * far)
        return ranks

    def _justified(self, starts: dict[int, int]) -> dict[int, int]:
        """The schedule run backwards and then forwards again, if that ends sooner."""
        back = dispatched(self._back, {n: -start - self._jobs.jobs[n].steps for n, start in starts.items()})
        again = dispatched(self._graph, {n: -start - self._jobs.jobs[n].steps for n, start in back.items()})
        return again if self._end(again) < self._end(starts) else starts


def memory_arcs(jobs: Jobs, starts: Mapping[int, int]) -> list[JobArc]:
    """What each pass that takes memory waits for under these starts: enough that gives back, and those before it."""
    found: list[JobArc] = []
    for pool, room in enumerate(jobs.room):
        here = [one for one in jobs.holdings if one.pool == pool and one.where in starts]
        takers = sorted((min(starts[n] for n in one.first), one) for one in here if one.takes and room is not None)
        givers = sorted((max(starts[n] + jobs.jobs[n].steps for n in one.last), one) for one in here if one.gives)
        level = 0
        for place, (begin, taker) in enumerate(takers):
            level += taker.takes
            while room is not None and level > room and givers and givers[0][0] <= begin:
                _, giver = givers.pop(0)
                level -= giver.gives
                found += [(one, other, 0) for one in giver.last for other in taker.first]
            if place:
                found += [(takers[place - 1][1].first[0], other, 0) for other in taker.first]
    return found
