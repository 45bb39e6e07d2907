"""Simulated annealing over ranks of jobs: each try generates a schedule serially from slightly changed ranks.

Ranks are the starts of the current schedule (random keys, Bean, ORSA Journal on Computing 6, 1994), moved for passes of
some stages and micro-batches, for an interval of time, or for a few jobs. Justification is that of Valls, Ballestín and
Quintanilla (European Journal of Operational Research 165, 2005).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from math import exp
from random import Random

import numpy as np
from numpy.typing import NDArray

from formulations.jobs.jobs import Jobs
from formulations.jobs.quantities import JobId, TimeSteps
from pipesched.int64_arrays import int64_array
from pipesched.problem.passes import BW, B, F, W
from solver.parameters import tunable, tuned
from solver.tasks.job_graph import JobArc, graph_of
from solver.tasks.serial_kernel import Gaps, Shop, generate


@dataclass(frozen=True)
@tunable
class RankParams:
    """Sizes of random changes of the ranks of jobs.

    A move's standard deviation is at most the mean job's duration, doubled `most_doublings` times. The interval whose
    jobs are moved is at most the share `longest_interval` of the schedule's end; of single jobs at most `most_jobs` are
    moved.
    """

    most_doublings: int = tuned(3, "doublings of the mean job's duration: standard deviation of a move at most", 0, 20)
    longest_interval: float = tuned(0.2, "of the value: length of the interval whose jobs are moved", 0, 1)
    most_jobs: int = tuned(6, "jobs that are moved one by one, at most", 1, 1000)


_PARAMS = RankParams()


Ranks = NDArray[np.float64]
_Rows = Sequence[Sequence[tuple[int, int]]]

_KINDS = ((F,), (B, BW), (W,), (F, B, BW), (B, BW, W), (F, B, BW, W))


class Serial:
    """Serial schedule generation of the jobs that run, with the precedences `further` in addition to their own.

    Arrays have an entry for each place in `running`, the numbers of these jobs, ascending. Of the jobs that can be
    placed, that of the lowest rank is next. Raises `Deadlock` if the precedences have a cycle, `ValueError` if a pass
    takes memory by several jobs, or a job takes or frees two memories.
    """

    def __init__(self, jobs: Jobs, running: Collection[JobId], further: Iterable[JobArc] = ()) -> None:
        self.jobs, self.running = jobs, sorted(running)
        number = {n: place for place, n in enumerate(self.running)}
        graph = graph_of(jobs, self.running, further)
        self._streams = {where: place for place, where in enumerate(jobs.on)}
        self._heads = graph.heads()
        count = len(self.running)
        memory, takes, group = np.zeros(count, np.int64), np.zeros(count, np.int64), np.full(count, -1, np.int64)
        sizes, gives, given_to = [0], [0], [0]
        for one in jobs.holdings:
            if one.where not in number or jobs.room[one.pool] is None:
                continue
            if one.takes:
                first = number[one.first[0]]
                if len(one.first) > 1 or takes[first]:
                    raise ValueError("memory that several jobs take, or a job that takes of two")
                memory[first], takes[first] = one.pool, one.takes
            if one.gives:
                last = [number[n] for n in one.last]
                if (group[last] >= 0).any():
                    raise ValueError("a job that gives back to two memories")
                group[last] = len(sizes)
                sizes.append(len(last))
                gives.append(one.gives)
                given_to.append(one.pool)
        room = int64_array([-1 if room is None else room for room in jobs.room])
        memory_columns = memory, takes, group, *(int64_array(of_group) for of_group in (sizes, gives, given_to)), room
        before, after = ([[(number[a], lag) for a, lag in arcs[n]] for n in self.running]
                         for arcs in (graph.before, graph.after))  # fmt: skip
        self.shop = self._shop(before, after, memory_columns)
        # With memory a schedule in reversed time need not be feasible.
        self._back = None if takes.any() else self._shop(after, before, memory_columns)
        self._make_room()

    def _make_room(self) -> None:
        most = max((len(here) for here in self.jobs.on.values()), default=0) + 1
        shape = len(self._streams), most
        self._gaps = Gaps(np.zeros(shape, np.int64), np.zeros(shape, np.int64), np.zeros(shape[0], np.int64))
        self._start = np.zeros(len(self.running), np.int64)

    def twin(self) -> Serial:
        """Return a copy with working arrays of its own, for another thread."""
        other = copy(self)
        other._make_room()
        return other

    def _shop(self, before: _Rows, after: _Rows, memory_columns: tuple[NDArray[np.int64], ...]) -> Shop:
        jobs = [self.jobs.jobs[n] for n in self.running]
        feeds = int64_array([pair for row in after for pair in row]).reshape(-1, 2)
        steps, streams = [job.steps for job in jobs], [self._streams[job.resources[0]] for job in jobs]
        further = np.full((len(jobs), max((len(job.resources) for job in jobs), default=1) - 1), -1, np.int64)
        for n, job in enumerate(jobs):
            for k, where in enumerate(job.resources[1:]):
                further[n, k] = self._streams[where]
        at = np.cumsum([0, *map(len, after)]).astype(np.int64)
        needs = int64_array([len(row) for row in before])
        own = int64_array(steps), int64_array(streams)
        return Shop._make((*own, *memory_columns, needs, at, feeds[:, 0].copy(), feeds[:, 1].copy(), further))

    def run(self, ranks: Ranks) -> tuple[TimeSteps, Ranks] | None:
        """Return the latest end and the starts, in steps, of the schedule by these ranks; None if memory deadlocks.

        Where memory is unlimited the schedule is justified: all jobs are shifted as late as possible and then as early
        as possible, and the result is used if it ends sooner.
        """
        found = self.plain(ranks)
        if found is None or self._back is None:
            return found
        generate(self._back, -(found[1] + self.shop.steps), self._start, self._gaps)
        again = self.plain(-(self._start + self.shop.steps).astype(np.float64))
        return again if again is not None and again[0] < found[0] else found

    def plain(self, ranks: Ranks) -> tuple[TimeSteps, Ranks] | None:
        """Return latest end and starts, in steps, without justification; None in a deadlock of memory."""
        ends = int(generate(self.shop, ranks, self._start, self._gaps))
        return None if ends < 0 else (ends, self._start.astype(np.float64))

    def starts(self, ranks: Ranks) -> dict[JobId, TimeSteps]:
        """Return an array of starts, in steps by place in `running`, as a mapping by job number."""
        return dict(zip(self.running, ranks.astype(np.int64).tolist(), strict=True))

    @property
    def heads(self) -> Ranks:
        """The longest path in steps to the start of each job over its precedences alone, without waits for streams."""
        return np.array([self._heads[n] for n in self.running], np.float64)


class RankSearch:
    """Annealing of ranks from the schedule `starts`, in steps by job; `ends` is the earliest end met, in steps.

    `best` has the starts of the schedule that ends then, by place in `serial.running`. `seed` is that of the random
    numbers. Ranks are tried one set after the other by `step`.
    """

    def __init__(self, serial: Serial, starts: Mapping[JobId, TimeSteps], seed: int) -> None:
        self._serial, self._random = serial, Random(seed)
        self._draw = np.random.default_rng(seed)
        jobs = [serial.jobs.jobs[n] for n in serial.running]
        self._stage, self._microbatch = (np.array([job.task.of[place] for job in jobs]) for place in (1, 2))
        kinds = np.array([job.task.of.kind for job in jobs])
        self._kinds = [np.isin(kinds, of) for of in _KINDS]
        self._device = np.array([serial.jobs.device(n) for n in serial.running])
        self._mean = float(np.mean(serial.shop.steps))
        self._now = self.best = np.array([starts[n] for n in serial.running], np.float64)
        self._now_ends = self.ends = int((self.best + serial.shop.steps).max())

    def step(self, temperature: float) -> bool:
        """Try changed ranks; True if the best schedule improved.

        `temperature` is a share of the current end: a schedule that ends later by a share w of it is the next one to
        change with probability exp(-w / temperature), never at 0.
        """
        found = self._serial.run(self._moved())
        if found is None:
            return False
        ends, starts = found
        worse = (ends - self._now_ends) / max(1, self._now_ends)
        if worse <= 0 or (temperature > 0 and self._random.random() < exp(-worse / temperature)):
            self._now, self._now_ends = starts, ends
        if ends >= self.ends:
            return False
        self.best, self.ends = starts, ends
        return True

    def _moved(self) -> Ranks:
        """Return the starts of the current schedule as ranks, with those of some jobs moved at random."""
        random, ranks = self._random, self._now.copy()
        far, kind = 2.0 ** random.randint(-1, _PARAMS.most_doublings) * self._mean, random.randrange(3)
        if kind == 0:
            inside = random.choice(self._kinds) & self._between(self._stage) & self._between(self._microbatch)
            ranks[inside] += random.gauss(0, far)
        elif kind == 1:
            since, length = (
                random.uniform(0, self._now_ends),
                random.uniform(0, _PARAMS.longest_interval) * self._now_ends,
            )
            inside = (ranks >= since) & (ranks <= since + length)
            if random.randrange(2):
                inside &= self._device == random.randrange(self._serial.jobs.problem.devices)
            ranks[inside] += self._draw.normal(0, far, int(inside.sum()))
        else:
            some = self._draw.integers(0, len(ranks), random.randint(1, _PARAMS.most_jobs))
            ranks[some] += self._draw.normal(0, far, len(some))
        return ranks

    def _between(self, values: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return the mask of the jobs whose stage or micro-batch (`values`) is in a random range, or is any, or one."""
        most, kind = int(values.max()), self._random.randrange(3)
        low, high = sorted(self._random.randint(0, most) for _ in range(2))
        if kind == 0:
            low, high = 0, most
        elif kind == 1:
            high = low
        return (values >= low) & (values <= high)
