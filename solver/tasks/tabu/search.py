"""Iterated tabu search over the orders of jobs on streams; each run starts from a changed copy of one of the best few.

Some starts lie between two of them, as in path relinking (Peng, Lü and Cheng, Computers & Operations Research 53,
2015): a weighted mean of the starts of two schedules respects every precedence.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from formulations.jobs.jobs import Jobs
from formulations.jobs.quantities import JobId, TimeSteps
from pipesched.int64_arrays import IntArray, int64_array
from solver.parameters import tunable, tuned
from solver.tasks.job_graph import graph_of
from solver.tasks.tabu.kernel import Effort, tabu_search
from solver.tasks.tabu.paths import AFTER, BEFORE, Orders


@dataclass(frozen=True)
@tunable
class TabuParams:
    """Parameters of one run of tabu search, and the number of schedules kept as starts.

    A run has at most `moves` moves and ends after `patience` without gain; a move is not undone for `shortest_tenure`
    to `longest_tenure` moves and passes at most `reach` places. `elite` schedules are kept.
    """

    moves: int = tuned(60_000, "moves of a run", 100, 10**7)
    patience: int = tuned(20_000, "moves without gain, after which a run ends", 100, 10**7)
    shortest_tenure: int = tuned(8, "moves for which a move is not undone, at least", 1, 1000)
    longest_tenure: int = tuned(16, "moves for which a move is not undone, at most", 1, 1000)
    reach: int = tuned(8, "places that a job is moved by at most", 1, 1000)
    elite: int = tuned(6, "best schedules kept to begin from", 1, 100)


_PARAMS = TabuParams()
_EFFORT = Effort(_PARAMS.moves, _PARAMS.patience, _PARAMS.shortest_tenure, _PARAMS.longest_tenure, far=_PARAMS.reach)


def limits_nothing(jobs: Jobs, running: Sequence[JobId]) -> bool:
    """True if memory has room for all jobs in `running` at once, so that every order of them fits."""
    taken, runs = [0] * len(jobs.room), set(running)
    for one in jobs.holdings:
        if one.where in runs:
            taken[one.pool] += one.takes
    return all(room is None or used <= room for used, room in zip(taken, jobs.room, strict=True))


class TabuSearch:
    """Iterated tabu search from the schedule `starts`, in steps by job.

    `ends` is the end of the best schedule in steps. Several threads may call `step`. Setting `halt[0]` ends all runs.
    """

    def __init__(self, jobs: Jobs, starts: Mapping[JobId, TimeSteps], seed: int) -> None:
        self._running = sorted(starts)
        number = {n: at for at, n in enumerate(self._running)}
        turns = [(one, other, 0) for one, other in jobs.consecutive if one in number and other in number]
        graph = graph_of(jobs, self._running, turns)
        self._steps = int64_array([jobs.jobs[n].steps for n in self._running])
        arcs_of_sides = (graph.before, graph.after)
        self._rows = _rows(
            [[[(number[b], lag) for b, lag in arcs[n]] for n in self._running] for arcs in arcs_of_sides]
        )
        self._before = [[number[b] for b, _ in graph.before[n]] for n in self._running]
        streams = {where: at for at, where in enumerate(jobs.on)}
        self._stream = np.array([streams[jobs.jobs[n].resources[0]] for n in self._running])
        self._random, self._draw, self._lock = Random(seed), np.random.default_rng(seed), Lock()
        given = int64_array([starts[n] for n in self._running])
        self._kept = [(int((given + self._steps).max()), given)]
        self._changes = False
        self.halt = np.zeros(1, np.int64)

    @property
    def ends(self) -> TimeSteps:
        return self._kept[0][0]

    @property
    def best(self) -> dict[JobId, TimeSteps]:
        """The starts of the best schedule, in steps by job."""
        return dict(zip(self._running, self._kept[0][1].tolist(), strict=True))

    def step(self) -> bool:
        """Run tabu search from a schedule kept, randomly changed except in the first run; True if the best improved."""
        with self._lock:
            begin = self._random.choice(self._kept)[1].astype(float)
            key, seed = self._changed(begin) if self._changes else begin, self._random.randrange(2**31)
            self._changes = True
        starts = np.zeros(len(begin), np.int64)
        ends = int(tabu_search(self._orders(key), _EFFORT, seed, self.halt, starts))
        with self._lock:
            better = ends < self.ends
            if all(ends != known for known, _ in self._kept):
                self._kept = sorted([*self._kept, (ends, starts)], key=lambda one: one[0])[: _PARAMS.elite]
        return better

    def _changed(self, starts: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return sort keys in a topological order: starts moved at random, sometimes mixed with another schedule's.

        Starts, in steps, and keys are by place among the jobs that run, ascending. `starts` is not changed.
        """
        random, far = self._random, 2.0 ** self._random.randint(-2, 2)
        if len(self._kept) > 1 and random.randrange(2):
            starts = starts + random.random() * (random.choice(self._kept)[1] - starts)
        key = starts + self._draw.normal(0, far * float(self._steps.mean()), len(starts))
        for n in np.argsort(starts, kind="stable").tolist():
            key[n] = max([key[n], *(np.nextafter(key[b], np.inf) for b in self._before[n])])
        return key

    def _orders(self, key: NDArray[np.float64]) -> Orders:
        """Return the arrays of tabu search with streams' jobs in the order of their keys; longest paths are not set."""
        sequence = np.argsort(key, kind="stable").astype(np.int64)
        place, neighbour, longest = (np.full(shape, -1, np.int64) for shape in (len(key), (2, len(key)), (2, len(key))))
        place[sequence] = np.arange(len(key))
        for stream in range(int(self._stream.max()) + 1):
            order = sequence[self._stream[sequence] == stream]
            neighbour[BEFORE, order[1:]], neighbour[AFTER, order[:-1]] = order[:-1], order[1:]
        return Orders(self._steps, sequence, place, *self._rows, neighbour, longest)


def _rows(sides: Sequence[Sequence[Sequence[tuple[int, int]]]]) -> tuple[IntArray, IntArray, IntArray]:
    """Return the (job, lag) pairs of both sides as compressed rows: row starts by side and job, jobs, and lags.

    The row of job n on side s goes from start (s, n) to start (s, n + 1), exclusive.
    """
    pairs = int64_array([pair for rows in sides for row in rows for pair in row]).reshape(-1, 2)
    lengths = int64_array([[0, *map(len, rows)] for rows in sides])
    at = lengths.cumsum().reshape(lengths.shape)
    return at, pairs[:, 0].copy(), pairs[:, 1].copy()
