"""One chain with a stage on each device, as arrays for the compiled beam search, and its runs as schedules."""

from __future__ import annotations

from collections import deque
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from pipesched.problem.passes import BW, B, F, Pass, Slot, W
from pipesched.problem.problem import Objective, Problem
from pipesched.schedule.schedule import Schedule
from solver.construction.beam_kernel import (
    EITHER,
    FORWARD,
    FULL,
    FUSED,
    GRADIENT,
    ROOM,
    SPLIT,
    TAKES,
    WEIGHT,
    Array,
    Line,
    Preference,
    run_beam,
)

_NO_LIMIT, _MOST_TICKS = 2**50, 2**50


def covers(problem: Problem) -> bool:
    """Whether it is one chain of equal micro-batches, a stage a device, without blocks, in which no B takes memory."""
    where, stages = problem.placement, problem.stages
    if not problem.network.one_task_each or problem.microbatch_scale or problem.queues or problem.overlaps:
        return False
    each = sum(stage.ticks(kind) + stage.transfer for stage in stages for kind in stage.kinds)
    small = (each + sum(map(sum, problem.links))) * problem.microbatches < _MOST_TICKS
    line = len(where.chains) == 1 and sorted(where.stage_device) == list(range(problem.devices))
    return small and line and all(stage.freed >= 0 for stage in stages)


def line_of(problem: Problem, split: bool, fused: bool, last: int | None = None) -> Line:
    """The problem with such backwards; with both, each may be either.

    If `last` is given, backwards are full, but for two kinds, whose gradients all devices before wait for: of the n-th
    stage those of the first n - 1 micro-batches, and after the first stage those of so many at the end.
    """
    chain, count = problem.placement.chains[0], problem.microbatches
    own = [problem.stages[s] for s in chain]
    rooms = [problem.room[problem.placement.stage_device[s]] for s in chain]
    down, up = [problem.lag(a, b) for a, b in pairwise(chain)], [problem.lag(b, a) for a, b in pairwise(chain)]
    forward, gradient = [one.forward for one in own], [one.ticks(B if split else BW) for one in own]
    path = [0]
    for lag, ticks in zip([*up, 0, *reversed(down), 0], [*gradient, *reversed(forward)], strict=True):
        path.append(path[-1] + ticks + lag)
    admitted = [
        room // one.activation for room, one in zip(rooms, own, strict=True) if room is not None and one.activation
    ]
    columns = (
        forward,
        gradient,
        [one.ticks(W) if split else 0 for one in own],
        [one.ticks(BW) for one in own],
        [one.activation for one in own],
        [one.activation - one.freed for one in own],
        [_NO_LIMIT if room is None else room for room in rooms],
        [*down, 0],
        [*up, 0],
        [path[-1] - path[2 * len(chain) - s] for s in range(len(chain))],
    )
    makespan = problem.objective is Objective.MAKESPAN
    stages, ways = np.array(columns, np.int64), np.array(path[::-1], np.int64)
    modes = np.full((len(chain), count), EITHER if split and fused else SPLIT if split else FULL, np.int64)
    if last is not None:
        early, late = range(len(chain)), count - last
        modes = np.array([[SPLIT if j < n or (n and j >= late) else FULL for j in range(count)] for n in early])
    return Line(stages, ways, count, min([count, *admitted]), split, fused, makespan, modes)


def ceilings(line: Line, share: int | None, more: int) -> Array:
    """How many may be in flight on each stage: percent of what Little's law gives and some besides; None: all."""
    stages, p = line.stages, line.stages.shape[1]
    if share is None:
        return np.full(p, line.in_flight, np.int64)
    work = stages[FORWARD] + stages[GRADIENT] + stages[WEIGHT]
    if line.fused:
        work = np.minimum(work, stages[FORWARD] + stages[FUSED])
    trips = line.path[:p] - line.path[2 * p : p : -1]
    admitted = np.maximum(1, stages[ROOM] // np.maximum(1, stages[TAKES]))
    apart = max(1.0, float(work.max()), float((trips / admitted).max()))
    return np.clip(np.floor(trips * share / 100 / apart + more), 1, line.in_flight).astype(np.int64)


class BeamRun(NamedTuple):
    """Rows of kind, stage and the weight passes before it, in turn; and what the objective is at most."""

    put: Array
    value: int


def beam_run(line: Line, most: Array, prefers: Preference, width: int, halt: Array) -> BeamRun | None:
    """One run; None where it comes to no end, or another thread sets `halt[0]`."""
    put = np.empty((2 * line.stages.shape[1] * line.microbatches, 3), np.int64)
    value = int(run_beam(line, most, prefers, width, put, halt))
    return BeamRun(put, value) if value >= 0 else None


def schedule_of_run(problem: Problem, run: BeamRun) -> Schedule:
    """The order in which a run put its passes; weight passes that wait to the end come last."""
    chain, where = problem.placement.chains[0], problem.placement.stage_device
    orders: list[list[Slot]] = [[] for _ in range(problem.devices)]
    done, waiting = [[0, 0] for _ in chain], [deque[int]() for _ in chain]
    kinds = (F, B, BW)
    for number, s, weights in run.put.tolist():
        order, kind = orders[where[chain[s]]], kinds[number]
        order += [(Pass(W, chain[s], waiting[s].popleft()),) for _ in range(weights)]
        j = done[s][kind is not F]
        done[s][kind is not F] += 1
        order.append((Pass(kind, chain[s], j),))
        if kind is B:
            waiting[s].append(j)
    for s, stage in enumerate(chain):
        orders[where[stage]] += [(Pass(W, stage, j),) for j in waiting[s]]
    return Schedule(tuple(map(tuple, orders)), "pipesched")
