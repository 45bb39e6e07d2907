"""The jobs of an iteration under way: what has not begun, as soon as the rest lets it, in the memory that is left."""

from __future__ import annotations

from dataclasses import replace

from formulations.jobs.jobs import Jobs
from formulations.jobs.jobs_of_problem import jobs_of
from pipesched.problem.passes import Pass
from pipesched.problem.problem import Problem
from pipesched.problem.state import State


def jobs_that_remain(problem: Problem, state: State) -> Jobs:
    """Of a problem whose passes are single tasks, a stream a device.

    A pass that runs when the state is taken has ended when its device starts another one, and so has given back by then
    what it gives back.
    """
    jobs = jobs_of(problem, frozenset(state.remaining(problem)))
    free = [state.now] * problem.devices
    held = [0] * problem.devices
    for p, (_, end) in state.ran.items():
        device, change = problem.device(p), problem.network.change[p.kind, p.stage]
        free[device] = max(free[device], end)
        held[device] += change.at_start + change.at_end
    room = [None if own is None else own - there for own, there in zip(problem.room, held, strict=True)]
    release = tuple(max(free[problem.device(job.task.of)], _after(problem, state, job.task.of)) for job in jobs.jobs)
    return replace(jobs, room=tuple(room), release=tuple(ticks * jobs.scale for ticks in release))


def _after(problem: Problem, state: State, p: Pass) -> int:
    """When all has arrived that a pass needs of those that have begun."""
    waits = problem.network.predecessors(p, state.ran)
    return max((state.ran[before].end + lag for before, lag in waits if before in state.ran), default=state.now)
