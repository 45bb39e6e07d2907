"""Activation modes that a window may change, and the jobs of modes that are not currently used."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from formulations.jobs.jobs import Jobs
from formulations.jobs.placed_jobs import PlacedJobs
from formulations.jobs.quantities import ChoiceId, JobId, TimeSteps
from pipesched.problem.passes import BW, OF_PARAMETERS, B, W
from pipesched.problem.quantities import DeviceId

# (job, another, steps): the other starts no sooner than so many steps after the end of the one.
Arc = tuple[JobId, JobId, TimeSteps]


def open_choices(placed: PlacedJobs, inside: Collection[JobId], free: Collection[DeviceId]) -> list[ChoiceId]:
    """Return the indices of the activation choices that a window may change.

    These are the ones whose jobs up to the backward are all in `inside` and on devices in `free`. Modes of backwards
    and the number of gathers stay.
    """
    jobs, inside = placed.jobs, set(inside)
    own: dict[tuple[int, int], list[int]] = {}
    for n in placed.start:
        p = jobs.jobs[n].task.of
        if p.kind is not W and p.kind not in OF_PARAMETERS:
            own.setdefault(p[1:], []).append(n)
    kinds = {job.choice: job.task.of.kind for job in jobs.jobs if job.choice is not None}
    found = []
    for choice, (stage, j, _, gathers) in enumerate(jobs.choices):
        if gathers:
            continue
        here = own[stage, j]
        on_free = all(device in free for n in here for device in jobs.devices(n))
        if kinds[choice] not in (B, W, BW) and on_free and inside.issuperset(here):
            found.append(choice)
    return found


def idle_jobs(placed: PlacedJobs, choices: Collection[ChoiceId]) -> list[JobId]:
    """Return the jobs of these choices that the schedule does not run, as they belong to modes that are not chosen."""
    jobs = placed.jobs.jobs
    return [n for n, job in enumerate(jobs) if job.choice in choices and n not in placed.start]


def arcs_of_idle_jobs(jobs: Jobs, idle: Sequence[JobId], inside: Collection[JobId]) -> list[Arc]:
    """Return the precedences, as (job, later job, lag in steps), among jobs of `inside` that touch a job of `idle`."""
    added = set(idle)
    return [
        (before, one.after, one.lag)
        for one in (jobs.precedences if added else ())
        for before in one.alternatives
        if one.after in inside and before in inside and (before in added or one.after in added)
    ]
