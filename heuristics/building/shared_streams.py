"""Copies on streams that several devices share: the order in which these devices use them."""

from __future__ import annotations

from dataclasses import replace

from pipesched.problem.network.task_network import Resource
from pipesched.problem.passes import Task
from pipesched.problem.problem import Problem
from pipesched.schedule.schedule import Schedule
from pipesched.schedule.stream_orders import stream_orders
from pipesched.simulation.simulator import simulate


def without_sharing(problem: Problem) -> Problem:
    """Return the problem with a separate stream for each device instead of shared ones."""
    return replace(problem, resources=replace(problem.resources, shared_streams=()))


def shared_streams_by_start(problem: Problem, schedule: Schedule) -> Schedule:
    """Return a schedule made for unshared streams, with the tasks on each shared stream in the order of their starts.

    Starts are those without sharing. In an order device by device, copies on the shared stream would wait for each
    other in a cycle. Unchanged without shared streams.
    """
    if not problem.resources.shared_streams:
        return schedule
    alone = without_sharing(problem)
    starts = simulate(alone, schedule).starts
    orders: dict[Resource, list[Task]] = {}
    for where, tasks in stream_orders(alone, schedule).items():
        orders.setdefault(problem.resources.on_device(where.device, where.stream), []).extend(tasks)
    merged = {where: tuple(sorted(tasks, key=starts.__getitem__)) for where, tasks in orders.items()}
    return Schedule(schedule.orders, schedule.name, merged, schedule.waits)
