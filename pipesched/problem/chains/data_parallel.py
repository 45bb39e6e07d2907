"""Data-parallel pipelines with lost or slow workers, as one problem with a chain of stages for each path.

A worker is a device of one of the pipelines. The passes of a lost worker go in turn to the workers of the other
pipelines with the same stages (ReCycle, arXiv 2405.14009): the i-th micro-batch to the i-th of them, cyclically.
Micro-batches of a pipeline that use the same workers share a chain, like the two directions of a bidirectional
placement.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from fractions import Fraction
from math import lcm
from typing import Any, NamedTuple

from pipesched.problem.features.device_resources import Pool
from pipesched.problem.placement import Placement
from pipesched.problem.problem import Problem
from pipesched.problem.quantities import DeviceId, StageId
from pipesched.problem.rescale import finer
from pipesched.problem.scaled_stage import scaled_stage
from pipesched.problem.stage import Stage


class Worker(NamedTuple):
    """A worker: device number `device` of data-parallel pipeline number `pipeline`, both counted from 0."""

    pipeline: int
    device: DeviceId


_NOTHING_ONCE: dict[str, Any] = {"once": (), "gather": None}
# The workers of a micro-batch's stages, in the order in which it walks them, and those stages.
_Path = tuple[tuple[Worker, ...], tuple[StageId, ...]]


def data_parallel(one: Problem, pipelines: int, lost: Collection[Worker], slow: Mapping[Worker, Fraction]) -> Problem:
    """Return the problem of `pipelines` copies of the pipeline `one`, without the workers in `lost`.

    The devices of the returned problem are the remaining workers, pipeline by pipeline. A pass on a worker in `slow`
    takes that worker's factor times as long; ticks become finer by the factors' common denominator. The micro-batches
    of `one` must be equal, and each of its devices must have at least one worker left.
    """
    one = finer(one, lcm(*(factor.denominator for factor in slow.values())))
    left = [Worker(p, d) for p in range(pipelines) for d in range(one.devices) if Worker(p, d) not in lost]
    number = {worker: n for n, worker in enumerate(left)}
    shares = _shares(one, pipelines, left)
    walked = [(worker, stage) for path in shares for worker, stage in zip(*path, strict=True)]
    ends = [len(stages) for _, stages in shares]
    holders = [walked.index(each) for each in walked]
    first = [sum(ends[:n]) for n in range(len(ends))]
    return replace(
        one,
        placement=Placement(
            "chains",
            len(left),
            tuple(number[worker] for worker, _ in walked),
            tuple(tuple(range(begin, begin + length)) for begin, length in zip(first, ends, strict=True)),
        ),
        microbatches=one.microbatches * pipelines,
        # A device holds the parameters of its stages once, however many chains go through them, and reduces once.
        stages=tuple(
            replace(
                _moving(scaled_stage(one.stages[s], slow.get(who, 1), 1), who, left),
                static=0,
                **({} if n == holder else _NOTHING_ONCE),
            )
            for n, ((who, s), holder) in enumerate(zip(walked, holders, strict=True))
        ),
        parameters=replace(one.parameters, holders=tuple(holders) if one.network.has_collectives else ()),
        pools=tuple(Pool(one.pools[worker.device].capacity, one.static[worker.device]) for worker in left),
        links=tuple(tuple(one.links[a.device][b.device] for b in left) for a in left) if one.links else (),
        resources=replace(
            one.resources,
            hosts=tuple(
                host._replace(devices=own)
                for host in one.resources.hosts
                for own in _copies(host.devices, left, number)
            ),
            shared_streams=tuple(
                shared._replace(devices=own)
                for shared in one.resources.shared_streams
                for own in _copies(shared.devices, left, number)
            ),
        ),
        walks=replace(one.walks, shares=tuple(shares.values())),
    )


def _shares(one: Problem, pipelines: int, left: list[Worker]) -> dict[_Path, int]:
    """Return the number of micro-batches on each path through workers and stages, pipeline by pipeline.

    In place of a worker that is not among those `left`, the others of its device take micro-batches in turn.
    """
    holders = [[worker for worker in left if worker.device == device] for device in range(one.devices)]
    found: dict[_Path, int] = {}
    for pipeline in range(pipelines):
        for stages, walk in zip(one.placement.chains, one.walking, strict=True):
            for i in range(len(walk)):
                taken = []
                for device in (one.placement.stage_device[stage] for stage in stages):
                    own, those = Worker(pipeline, device), holders[device]
                    taken.append(own if own in those else those[i % len(those)])
                path = tuple(taken), stages
                found[path] = found.get(path, 0) + 1
    return found


def _moving(stage: Stage, who: Worker, left: list[Worker]) -> Stage:
    """Return the stage of worker `who` with the device that its activations move to renumbered for the joined problem.

    That is the worker of its own pipeline, or where it is lost the first one left with the same stages.
    """
    if stage.offload is None or stage.offload.to is None:
        return stage
    able = [worker for worker in left if worker.device == stage.offload.to]
    to = min(able, key=lambda worker: (worker.pipeline != who.pipeline, worker))
    return replace(stage, offload=stage.offload._replace(to=left.index(to)))


def _copies(
    devices: tuple[DeviceId, ...], left: list[Worker], number: Mapping[Worker, DeviceId]
) -> list[tuple[DeviceId, ...]]:
    """Return the joined problem's copies of a group of `devices` that share a host or stream: one for each pipeline.

    Each is the numbers, in the joined problem, of the group's workers that are left; pipelines without any have none.
    """
    pipelines = sorted({worker.pipeline for worker in left if worker.device in devices})
    return [tuple(number[w] for w in left if w.pipeline == n and w.device in devices) for n in pipelines]
