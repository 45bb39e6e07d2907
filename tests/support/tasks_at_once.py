"""Tiny problems in which some tasks occupy several streams at once: transfers of both devices, and any tasks."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from pipesched.problem.features.device_resources import SENDING
from pipesched.problem.network.task_network import Resource
from pipesched.problem.problem import Problem
from pipesched.problem.rendezvous import with_receipts
from pipesched.problem.stage import Stage, TaskSpec
from tests.support.task_brute_force import tiny_tasks, with_parameters


def tiny_at_once(rng: Random) -> Problem:
    """Return a problem of transfers that occupy both devices, tasks on one or two further streams, or both."""
    while not (found := _drawn(rng)).network.occupies_several:
        pass
    return found


def _drawn(rng: Random) -> Problem:
    one = tiny_tasks(rng)
    if not any(task.name == SENDING for tasks in one.network.tasks.values() for task in tasks):
        one = replace(one, resources=replace(one.resources, transfer_stream=None))
    one = with_parameters(rng, one) if rng.random() < 0.2 else one
    if one.resources.transfer_stream is not None and rng.random() < 0.7:
        one = with_receipts(one)
        return one if rng.random() < 0.5 else with_further_streams(rng, one)
    return with_further_streams(rng, one)


def with_further_streams(rng: Random, problem: Problem) -> Problem:
    """Return the problem with some tasks that occupy further streams, of their device or of others."""
    share = rng.choice((0.2, 0.5))
    everywhere = [Resource(device, stream) for device in range(problem.devices) for stream in problem.streams]

    def occupying(device: int, task: TaskSpec) -> TaskSpec:
        others = [where for where in everywhere if where != (device, task.stream)]
        if task.also or not others or rng.random() >= share:
            return task
        return task._replace(also=tuple(rng.sample(others, min(len(others), rng.choice((1, 1, 2))))))

    def rewritten(device: int, stage: Stage) -> Stage:
        tasks = dict(stage.tasks)
        for kind in stage.kinds:
            own = stage.tasks_of(kind)
            if kind not in stage.kinds_of_parameters:
                tasks[kind] = tuple(occupying(device, task) for task in own)
        return stage.with_tasks(tasks) if any(task.also for own in tasks.values() for task in own) else stage

    placed = zip(problem.placement.stage_device, problem.stages, strict=True)
    return replace(problem, stages=tuple(rewritten(device, stage) for device, stage in placed))
