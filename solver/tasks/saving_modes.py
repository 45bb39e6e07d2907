"""Choices of activation modes (offload, recompute) stage by stage, and the earliest times of their reloads."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

from formulations.jobs.jobs import Jobs
from formulations.jobs.quantities import JobId, TimeSteps
from pipesched.problem.passes import BW, RELOAD, B, F, Pass, PassKind, Task
from pipesched.problem.quantities import MicrobatchId, StageId
from solver.tasks.job_graph import JobArc, JobGraph, graph_of, with_modes

# The jobs that run, and further arcs between them.
Running = tuple[list[JobId], list[JobArc]]


def saving_modes(jobs: Jobs) -> Iterator[Running]:
    """Yield choices of the jobs that run.

    Each has arcs that delay its reloads or recomputations until they are needed. There is one choice for offloading,
    which is first, and one for each kind of recomputation, used on every stage where the time until the backward
    suffices for it. Without modes of activations there is one choice, without arcs. Backwards are split.
    """
    options = jobs.problem.network.options
    kinds = {kind for modes in options.values() for mode in modes for kind in mode}
    if not kinds:
        yield with_modes(jobs, fused=False), []
    for kind in sorted(kinds, key=lambda kind: (kind is not RELOAD, kind.value)):
        if kind is RELOAD or not any(RELOAD in mode and kind in mode for modes in options.values() for mode in modes):
            yield running_with(jobs, kind)


def running_with(jobs: Jobs, kind: PassKind) -> Running:
    """Return the jobs that run if activations return by passes of `kind`, and arcs between jobs.

    A stage whose backward is needed before such a pass could end keeps its activations. The arcs delay reloads or
    recomputations until they are needed.
    """
    options = jobs.problem.network.options
    waiting = graph_of(jobs, _with_options(jobs, {stage: _keeping(modes) for stage, modes in options.items()}))
    heads, chosen = waiting.heads(), dict[int, int]()
    for stage, modes in options.items():
        j = jobs.problem.microbatches_of[stage][0]
        at = next((n for n, mode in enumerate(modes) if kind in mode), 0)
        took = sum(_length(jobs, Pass(one, stage, j)) for one in modes[at])
        begin = heads[jobs.number[Task(_backward(jobs, stage, j))]]
        free = begin - max(heads[n] + jobs.jobs[n].steps for n in _parts(jobs, Pass(F, stage, j)))
        chosen[stage] = _keeping(modes) if free <= took else at
    running = _with_options(jobs, chosen)
    arcs = [
        (jobs.number[Task(_released_by(waiting, heads, jobs.jobs[n].task.of))], n, 0)
        for n in running
        if jobs.jobs[n].task.of.kind is kind and jobs.jobs[n].task.part == 0
    ]
    return running, arcs


def _released_by(graph: JobGraph, heads: dict[JobId, TimeSteps], p: Pass) -> Pass:
    """Return the pass after whose first task reload `p` may begin: the last one downstream that is early enough.

    If none is, it is the stage's own forward. `heads` are the earliest starts of jobs, in steps.
    """
    jobs, (_, stage, j) = graph.jobs, p
    chain = next(chain for chain in jobs.problem.placement.chains if stage in chain)
    downstream = chain[chain.index(stage) + 1 :]
    needed = heads[jobs.number[Task(_backward(jobs, stage, j))]] - _length(jobs, p)
    for before in (
        *(_backward(jobs, one, j) for one in downstream),
        *(Pass(F, one, j) for one in reversed(downstream)),
    ):
        n = jobs.number[Task(before)]
        if heads[n] + jobs.jobs[n].steps <= needed:
            return before
    return Pass(F, stage, j)


def _backward(jobs: Jobs, stage: StageId, j: MicrobatchId) -> Pass:
    split = Pass(B, stage, j)
    return split if Task(split) in jobs.number else split._replace(kind=BW)


def _keeping(modes: tuple[frozenset[PassKind], ...]) -> int:
    return next((n for n, mode in enumerate(modes) if not mode), 0)


def _parts(jobs: Jobs, p: Pass) -> Iterator[JobId]:
    """Yield the numbers of the jobs of a pass, in the order of its tasks; none if it has no jobs."""
    for part in count():
        if Task(p, part) not in jobs.number:
            return
        yield jobs.number[Task(p, part)]


def _length(jobs: Jobs, p: Pass) -> TimeSteps:
    return sum(jobs.jobs[n].steps for n in _parts(jobs, p))


def _with_options(jobs: Jobs, chosen: dict[StageId, int]) -> list[JobId]:
    """Return the jobs that run with split backwards; `chosen` is each stage's index into its modes of activations."""
    kinds = {stage: jobs.problem.network.options[stage] for stage in chosen}
    found = []
    for n, job in enumerate(jobs.jobs):
        p = job.task.of
        modes = kinds.get(p.stage, ())
        if any(p.kind in mode for mode in modes):
            runs = p.kind in modes[chosen[p.stage]]
        else:
            runs = job.choice is None or not job.option
        if runs:
            found.append(n)
    return found
