"""Policies of dispatching: a few numbers that say which task of a problem a free stream begins.

Times are in periods: what the busiest stream needs for a micro-batch. Micro-batches are in ways: as many as there are
periods in the least time of one micro-batch from its first task to its last.
"""

from __future__ import annotations

from copy import copy
from random import Random
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pipesched.problem.passes import F, W
from solver.tasks.policy_kernel import BACKWARD, FORWARD, URGENT, WEIGHT, Decided, Flow, dispatch
from solver.tasks.rank_search import Ranks, Serial


class Policy(NamedTuple):
    """Under way on a stage: `stretch` times the least its micro-batches need, `slack` more, and `deep` for each period
    that its device waits for its first task. Weight tasks wait up to `stock` periods of work and `deep_stock` likewise.

    Forwards rank by their least start and `forward` a micro-batch, those of the first `first` ways by `forward_first`;
    backwards by `backward`. Urgent are the first `early` ways of micro-batches, the backwards of the last `late`, and
    the forwards of the last `late_forward`: by micro-batch. A stream waits `patience` mean lengths of tasks for
    early backwards, `forward_patience` for early forwards, `late_patience` for the late ones, and `most_patience` for
    the first `express` ways and the last `last_express`. Backwards come before forwards where `order` is above a half.
    """

    stretch: float
    slack: float
    deep: float
    stock: float
    deep_stock: float
    forward: float
    forward_first: float
    first: float
    backward: float
    early: float
    late: float
    late_forward: float
    patience: float
    forward_patience: float
    late_patience: float
    most_patience: float
    express: float
    last_express: float
    order: float

    def moved(self, random: Random) -> Policy:
        """Some of the numbers a little or far from here."""
        found = list(self)
        for _ in range(random.choice((1, 1, 2, 3))):
            at = random.randrange(len(found))
            low, high = LOWEST[at], HIGHEST[at]
            found[at] += random.gauss(0, random.choice((0.02, 0.05, 0.15, 0.4)) * (high - low))
            found[at] = min(high, max(low, found[at]))
        return Policy(*found)


LOWEST = Policy(1.0, 0.5, *[0.0] * 17)
HIGHEST = Policy(3.0, 5.0, 8.0, 6.0, 3.0, 2.0, 4.0, 2.0, 2.0, 2.0, 2.0, 1.0, 2.0, 2.0, 4.0, 4.0, 0.2, 0.4, 1.0)
# Tuned on Kimi K2's 61 layers on 16 devices: it holds little, and lets the first and the last micro-batch pass.
STEADY = Policy(
    2.46, 2.58, 1.04, 1.91, 0.5, 0.4, 2.0, 0.97, 0.256, 0.482, 0.487, 0.0, 0.65, 0.65, 0.684, 4.0, 0.164, 0.0958, 0.2
)  # fmt: skip
# Backwards first, and nothing waits.
EAGER = Policy(1.5, 2.0, 0.0, 0.3, 0.0, 1.0, 1.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0)


class Dispatcher:
    """Schedules of the jobs of `serial` by policies."""

    def __init__(self, serial: Serial) -> None:
        self._shop, jobs = serial.shop, serial.jobs
        tasks = [jobs.jobs[n].task for n in serial.running]
        walked = jobs.problem.microbatches_of
        places = [{j: place for place, j in enumerate(own)} for own in walked]
        self._turn = np.array([places[task.of.stage][task.of.microbatch] for task in tasks], np.float64)
        self._behind = np.array([len(walked[task.of.stage]) for task in tasks]) - 1 - self._turn
        kinds = [FORWARD if task.of.kind is F else WEIGHT if task.of.kind is W else BACKWARD for task in tasks]
        self._kind, self._heads = np.array(kinds, np.int64), serial.heads
        self._flow = self._flow_of(serial)
        self._period = max(1.0, np.bincount(self._shop.stream, self._shop.steps).max() / jobs.problem.microbatches)
        self._mean, self._way = float(np.mean(self._shop.steps)), 0.0
        self._lengths(serial)
        self._start = np.zeros(len(tasks), np.int64)

    def twin(self) -> Dispatcher:
        """The same with room of its own to work in, for another thread."""
        other = copy(self)
        other._start = np.zeros_like(self._start)
        return other

    def run(self, policy: Policy) -> tuple[int, Ranks] | None:
        """The last end and the starts, in steps; None where the policy lets nothing begin any more."""
        ends = int(dispatch(self._shop, self._flow, self._decided(policy), self._start))
        return None if ends < 0 else (ends, self._start.astype(np.float64))

    def _flow_of(self, serial: Serial) -> Flow:
        jobs, shop = serial.jobs, self._shop
        whole: dict[tuple[int, int], int] = {}
        stage, ends = (np.full(len(serial.running), -1, np.int64) for _ in range(2))
        opens = np.zeros(len(serial.running), np.bool_)
        devices = np.zeros(int(shop.stream.max()) + 1, np.int64)
        for at, n in enumerate(serial.running):
            kind, stage[at], microbatch = (task := jobs.jobs[n].task).of
            devices[shop.stream[at]] = jobs.device(n)
            opens[at] = kind is F and task.part == 0
            if kind is not F:
                ends[at] = whole.setdefault((int(stage[at]), microbatch), len(whole))
        parts = np.bincount(ends[ends >= 0], minlength=1).astype(np.int64)
        load = np.bincount(shop.stream, shop.steps)
        most = {d: load[devices == d].max() for d in set(devices.tolist())}
        late = np.array([load[r] == most[d] for r, d in enumerate(devices.tolist())])
        where = np.array(jobs.problem.placement.stage_device, np.int64)
        return Flow(stage, opens, ends, parts, where, devices, late)

    def _lengths(self, serial: Serial) -> None:
        """Periods that a micro-batch needs for its way and is under way on each stage, and each device waits."""
        stages, period = len(self._flow.device), self._period
        first, last = np.full(stages, np.inf), np.zeros(stages)
        begun = self._turn == 0
        np.minimum.at(first, self._flow.stage[begun], self._heads[begun])
        np.maximum.at(last, self._flow.stage[begun], (self._heads + self._shop.steps)[begun])
        self._under_way = np.where(last > 0, last - np.where(last > 0, first, 0), 0) / period
        self._way = float(last.max()) / period
        self._depth = np.full(serial.jobs.problem.devices, np.inf)
        np.minimum.at(self._depth, self._flow.device, first / period)
        self._depth[np.isinf(self._depth)] = 0
        weights = self._shop.steps[self._kind == WEIGHT]
        self._weight = float(weights.mean()) / period if len(weights) else 1.0

    def _decided(self, policy: Policy) -> Decided:
        turn, behind, way = self._turn, self._behind, self._way
        forward = self._kind == FORWARD
        first = np.minimum(turn, policy.first * way)
        later = np.where(
            forward, policy.forward * turn + (policy.forward_first - policy.forward) * first, policy.backward * turn
        )
        urgent = (turn < policy.early * way) & (self._kind != WEIGHT)
        urgent |= (behind < policy.late * way) & (self._kind == BACKWARD)
        urgent |= (behind < policy.late_forward * way) & forward
        far = self._heads.max() + 4 * self._period * (turn.max() + 1)
        rank = np.where(urgent, self._heads + far * turn, self._heads + self._period * later)
        express = (turn < policy.express * way) | (behind < policy.last_express * way)
        early = np.where(forward, policy.forward_patience, policy.patience)
        waits = np.where(behind < policy.late * way, policy.late_patience, early)
        patience = np.where(express, policy.most_patience, waits) * self._mean
        depth = self._depth
        most = np.ceil(policy.stretch * self._under_way + policy.slack + policy.deep * depth[self._flow.device])
        stock = (policy.stock + policy.deep_stock * depth) / self._weight
        kind = np.where(urgent, URGENT, self._kind)
        return Decided(
            kind, _places(rank), patience.astype(np.int64), most.astype(np.int64),
            stock[self._flow.stream_device].astype(np.int64), policy.order > 0.5,
        )  # fmt: skip


def _places(rank: NDArray[np.float64]) -> NDArray[np.int64]:
    """The place of each in the order of ranks: no two are alike."""
    found = np.empty(len(rank), np.int64)
    found[np.argsort(rank, kind="stable")] = np.arange(len(rank))
    return found
