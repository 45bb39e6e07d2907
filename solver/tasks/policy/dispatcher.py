"""Dispatching by a policy: its numbers become ranks, priority classes and limits of the jobs of a problem."""

from __future__ import annotations

from copy import copy

import numpy as np
from numpy.typing import NDArray

from formulations.jobs.quantities import TimeSteps
from pipesched.int64_arrays import int64_array
from pipesched.problem.passes import BW, OF_PARAMETERS, UNSHARD, B, F, W
from pipesched.problem.problem import Problem
from solver.tasks.policy.kernel import dispatch
from solver.tasks.policy.policy import Policy
from solver.tasks.policy.state import BACKWARD, FORWARD, URGENT, WEIGHT, Decided, Flow
from solver.tasks.rank_search import Ranks, Serial
from solver.tasks.serial_kernel import Shop


class Dispatcher:
    """Makes schedules of the jobs of `serial` by policies, in order of time.

    Memory and precedences are those of `serial`. `run` returns the latest end and the starts of a policy's schedule, in
    steps by place in `serial.running`; None if it deadlocks. `again` is True if the policy's numbers for later visits
    of a device matter, `back` if the number that delays reloads and recomputations does. Each thread needs a copy, made
    by `twin`.
    """

    def __init__(self, serial: Serial) -> None:
        self.serial, self._shop, jobs = serial, serial.shop, serial.jobs
        tasks = [jobs.jobs[n].task for n in serial.running]
        walked = jobs.problem.microbatches_of
        places = [{j: place for place, j in enumerate(own)} for own in walked]
        # Passes that run once per stage count as those of its last micro-batch.
        last = [len(own) - 1 for own in walked]
        turns = [
            (0 if task.of.kind is UNSHARD else last[task.of.stage])
            if task.of.kind in OF_PARAMETERS
            else places[task.of.stage][task.of.microbatch]
            for task in tasks
        ]
        self._turn = np.array(turns, np.float64)
        self._remaining = np.array([len(walked[task.of.stage]) for task in tasks]) - 1 - self._turn
        kinds = [FORWARD if task.of.kind is F else WEIGHT if task.of.kind is W else BACKWARD for task in tasks]
        self._saves = np.array([task.of.kind not in (F, B, W, BW, *OF_PARAMETERS) for task in tasks])
        self._mean_takes = _mean_takes(self._shop)
        self._kind, self._heads = int64_array(kinds), serial.heads
        self._flow = self._flow_of(serial)
        # Arcs by which a reload or recomputation waits for a pass of another stage.
        before = np.repeat(self._flow.stage, np.diff(self._shop.feeds_at))
        self._releases = self._saves[self._shop.feeds_to] & (before != self._flow.stage[self._shop.feeds_to])
        self._revisits = _revisits(jobs.problem)
        self._again = self._revisits[[task.of.stage for task in tasks]]
        self._period = max(1.0, np.bincount(self._shop.stream, self._shop.steps).max() / jobs.problem.microbatches)
        self._mean, self._path = float(np.mean(self._shop.steps[~self._saves])), 0.0
        self._lengths(serial)
        self._start = np.zeros(len(tasks), np.int64)

    @property
    def again(self) -> bool:
        """True if a chain visits some device more than once.

        Then a policy's numbers for later visits (`..._again`) matter.
        """
        return bool(self._revisits.any())

    @property
    def back(self) -> bool:
        """True if some reload or recomputation waits for a pass of another stage, so that a policy can delay it."""
        return bool(self._releases.any())

    def twin(self) -> Dispatcher:
        """Return a copy with working arrays of its own, for another thread."""
        other = copy(self)
        other._start = np.zeros_like(self._start)
        return other

    def run(self, policy: Policy) -> tuple[TimeSteps, Ranks] | None:
        """Return the latest end and the starts of the policy's schedule, in steps; None if it deadlocks."""
        ends = int(dispatch(self._delayed(policy), self._flow, self._decided(policy), self._start))
        return None if ends < 0 else (ends, self._start.astype(np.float64))

    def _delayed(self, policy: Policy) -> Shop:
        """Return the arrays of jobs with longer lags to reloads and recomputations, as the policy says."""
        if not self.back:
            return self._shop
        lags = self._shop.feeds_lag + np.where(self._releases, int(policy.later * self._period), 0)
        return self._shop._replace(feeds_lag=lags)

    def _flow_of(self, serial: Serial) -> Flow:
        """Return the arrays of stages, passes and devices that dispatching needs, by job index in `serial.running`."""
        jobs, shop = serial.jobs, self._shop
        whole: dict[tuple[int, int], int] = {}
        stage, ends = (np.full(len(serial.running), -1, np.int64) for _ in range(2))
        opens = np.zeros(len(serial.running), np.bool_)
        devices = np.zeros(int(shop.stream.max()) + 1, np.int64)
        for at, n in enumerate(serial.running):
            task = jobs.jobs[n].task
            kind, stage[at], microbatch = task.of
            devices[shop.stream[at]] = jobs.device(n)
            opens[at] = kind is F and task.part == 0
            if kind is not F and kind not in OF_PARAMETERS:
                ends[at] = whole.setdefault((int(stage[at]), microbatch), len(whole))
        parts = np.bincount(ends[ends >= 0], minlength=1).astype(np.int64)
        load = np.bincount(shop.stream, shop.steps)
        most = {d: load[devices == d].max() for d in set(devices.tolist())}
        late = np.array([load[r] == most[d] for r, d in enumerate(devices.tolist())])
        where = int64_array(jobs.problem.placement.stage_device)
        return Flow(stage, opens, ends, parts, where, devices, late)

    def _lengths(self, serial: Serial) -> None:
        """Set the least times of a micro-batch in all, in flight on each stage, and until each device first starts.

        Also set is the mean time of a weight task. All are in periods, the time that the busiest stream needs for one
        micro-batch.
        """
        stages, period = len(self._flow.device), self._period
        first, last = np.full(stages, np.inf), np.zeros(stages)
        begun = self._turn == 0
        np.minimum.at(first, self._flow.stage[begun], self._heads[begun])
        np.maximum.at(last, self._flow.stage[begun], (self._heads + self._shop.steps)[begun])
        self._time_in_flight = np.where(last > 0, last - np.where(last > 0, first, 0), 0) / period
        self._path = float(last.max()) / period
        self._depth = np.full(serial.jobs.problem.devices, np.inf)
        np.minimum.at(self._depth, self._flow.device, first / period)
        self._depth[np.isinf(self._depth)] = 0
        weights = self._shop.steps[self._kind == WEIGHT]
        self._weight = float(weights.mean()) / period if len(weights) else 1.0

    def _decided(self, policy: Policy) -> Decided:
        """Return a policy's decisions: class, rank and patience of jobs, limits of stages, streams and memories."""
        turn, remaining, path, again = self._turn, self._remaining, self._path, self._again

        def by_visit(first: float, later: float) -> NDArray[np.float64]:
            return np.where(again, later, first)

        forward = self._kind == FORWARD
        urgent = (turn < by_visit(policy.early, policy.early_again) * path) & (self._kind != WEIGHT)
        urgent |= (remaining < by_visit(policy.late, policy.late_again) * path) & (self._kind == BACKWARD)
        urgent |= (remaining < policy.late_forward * path) & forward
        urgent &= ~self._saves
        first = np.minimum(turn, by_visit(policy.first, policy.first_again) * path)
        apart = by_visit(policy.forward, policy.forward_again)
        forwards = apart * turn + (by_visit(policy.forward_first, policy.forward_first_again) - apart) * first
        forwards += by_visit(0.0, policy.forward_later)
        forwards -= by_visit(0.0, policy.hurry) * np.maximum(0, policy.closing * path - remaining)
        backwards = by_visit(policy.backward, policy.backward_again) * turn + by_visit(0.0, policy.backward_later)
        later = self._heads + self._period * np.where(forward, forwards, backwards)
        far = self._heads.max() + 4 * self._period * (turn.max() + 1)
        rank = np.where(urgent, self._heads + far * turn, later)
        express = (turn < policy.express * path) | (remaining < policy.last_express * path)
        early = np.where(forward, policy.forward_patience, policy.patience)
        waits = np.where(remaining < policy.late * path, policy.late_patience, early)
        patience = np.where(express, policy.most_patience, waits) * self._mean
        slack, depth = policy.slack + policy.slack_again * self._revisits, self._depth
        most = np.ceil(policy.stretch * self._time_in_flight + slack + policy.deep * depth[self._flow.device])
        stock = (policy.stock + policy.deep_stock * depth) / self._weight
        kind = np.where(urgent, URGENT, self._kind)
        return Decided(
            kind, _places(rank), patience.astype(np.int64), most.astype(np.int64),
            stock[self._flow.stream_device].astype(np.int64), (policy.reserve * self._mean_takes).astype(np.int64),
            policy.order > 0.5,
        )  # fmt: skip


def _places(rank: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the position of each rank in ascending order; equal ranks keep the order of jobs."""
    found = np.empty(len(rank), np.int64)
    found[np.argsort(rank, kind="stable")] = np.arange(len(rank))
    return found


def _mean_takes(shop: Shop) -> NDArray[np.float64]:
    """Return for each memory the mean amount that a job takes, of those that take from it; 0 if none does."""
    takers, rooms = shop.takes > 0, len(shop.room)
    found = np.bincount(shop.memory[takers], shop.takes[takers].astype(np.float64), rooms)
    return found / np.maximum(1, np.bincount(shop.memory[takers], minlength=rooms))


def _revisits(problem: Problem) -> NDArray[np.bool_]:
    """Return for each stage True if an earlier stage of its chain is on the same device."""
    where = problem.placement.stage_device
    found = np.zeros(len(where), np.bool_)
    for chain in problem.placement.chains:
        for place, stage in enumerate(chain):
            found[stage] = where[stage] in [where[one] for one in chain[:place]]
    return found
