"""Gathers of sharded parameters as constraints on jobs: a pass runs only while its stage's parameters are gathered."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from itertools import pairwise

from formulations.jobs.jobs import Jobs, Precedence, UngatheredInterval
from formulations.jobs.quantities import ChoiceId, JobId, TimeSteps
from pipesched.problem.passes import BW, RECOMPUTATIONS, RESHARD, UNSHARD, B, Pass, Task
from pipesched.problem.problem import Problem
from pipesched.problem.quantities import MicrobatchId, StageId
from pipesched.problem.state import State
from pipesched.schedule.gathered import gathered, uses_parameters
from pipesched.schedule.schedule import Schedule

# The first jobs of a pass, and those after which it has ended.
_Ends = tuple[tuple[JobId, ...], tuple[JobId, ...]]


class GatherConstraints:
    """Gathers and releases of parameters among `passes`, as constraints on jobs; `number` has the job of each task.

    `gaps` has, stage by stage, the interval from each release to the next gather; `precedences` are the arcs that apply
    whatever modes are chosen: the first gather before all passes that use the parameters, these before the last
    release, and gathers and releases in turn.
    """

    def __init__(self, problem: Problem, passes: Collection[Pass], number: Mapping[Task, JobId]) -> None:
        self._problem, self._passes, self._number = problem, passes, number
        self.precedences: list[Precedence] = []
        gaps: list[UngatheredInterval] = []
        for stage, own in enumerate(problem.stages):
            gathers = [Pass(UNSHARD, stage, k) for k in range(own.gather.most)] if own.gather else []
            if gathers and gathers[0] in passes:
                gaps += self._of_stage(gathers)
        self.gaps = tuple(gaps)

    def _of_stage(self, gathers: list[Pass]) -> Iterator[UngatheredInterval]:
        holder = self._problem.parameters.holder
        stage = gathers[0].stage
        users = tuple(ends_of(self._problem, self._number, p) for p in self._passes
                      if uses_parameters(self._problem, p.kind, p.stage) and holder(p.stage) == stage)  # fmt: skip
        begin = [self._number[Task(p)] for p in gathers]
        end = [self._number[Task(p._replace(kind=RESHARD))] for p in gathers]
        self._after(begin[0], [n for first, _ in users for n in first])
        for gather, release in zip(begin, end, strict=True):
            self._after(gather, [release])
        for _, last in users:
            for n in last:
                self._after(n, end[-1:])
        for release, gather in zip(end, begin[1:], strict=False):
            self._after(release, [gather])
            yield UngatheredInterval(release, gather, users)

    def _after(self, before: JobId, jobs: list[JobId]) -> None:
        self.precedences += [Precedence(n, (before,), 0) for n in jobs]


def ends_of(problem: Problem, number: Mapping[Task, JobId], p: Pass) -> _Ends:
    """Return (jobs with which a pass begins, jobs after all of which it has ended), both as tuples of job numbers."""
    network, pass_type = problem.network, (p.kind, p.stage)
    parts = network.begins[pass_type], network.ends[pass_type]
    first, last = (tuple(number[Task(p, part)] for part in tasks) for tasks in parts)
    return first, last


def grouped_as(jobs: Jobs, schedule: Schedule) -> Jobs:
    """Return the jobs, restricted to schedules in which each pass uses the same gathering as in `schedule`.

    Precedences then replace the gaps between a release and the next gather. A recomputation that `schedule` does not
    run uses the gathering of its backward. Jobs without gathered parameters are returned unchanged.
    """
    if not any(stage.gather for stage in jobs.problem.stages):
        return jobs
    problem, number = jobs.problem, jobs.number
    without = _recomputations_but(jobs, schedule.pass_set)
    arcs: list[tuple[int, int]] = []
    for one in gathered(problem, schedule):
        idle = [again for p in one.users if p.kind in (B, BW) for again in without.get(p[1:], ())]
        ends = [ends_of(problem, number, p) for p in (*one.users, *idle)]
        arcs += [(number[Task(one.gather)], n) for first, _ in ends for n in first]
        if one.release is not None:
            arcs += [(n, number[Task(one.release)]) for _, last in ends for n in last]
    precedences = (*jobs.precedences, *(Precedence(after, (before,), 0) for before, after in arcs))
    return replace(jobs, precedences=precedences, gaps=(), renumbered=False)


def _recomputations_but(jobs: Jobs, running: Collection[Pass]) -> dict[tuple[StageId, MicrobatchId], list[Pass]]:
    """Return, by (stage, micro-batch), the recomputation passes among the jobs that are not in `running`."""
    found: dict[tuple[int, int], list[Pass]] = {}
    for p in {job.task.of for job in jobs.jobs if job.task.of.kind in RECOMPUTATIONS} - set(running):
        found.setdefault(p[1:], []).append(p)
    return found


def grouped_at(jobs: Jobs, starts: Mapping[JobId, TimeSteps]) -> Jobs:
    """Return the jobs, restricted to schedules in which each pass uses the same gathering as with these starts.

    `starts` has the step at which each job starts; jobs that have ended or do not run are absent. A recomputation that
    does not run uses the gathering of its backward. Precedences then replace the gaps between a release and the next
    gather. Jobs without gaps are returned unchanged.
    """
    found = list[Precedence]()
    backward: dict[tuple[int, int], list[int]] = {}
    for n in starts if jobs.gaps else ():
        if jobs.jobs[n].task.of.kind in (B, BW):
            backward.setdefault(jobs.jobs[n].task.of[1:], []).append(n)
    for gap in jobs.gaps:
        if gap.release in starts:
            for first, last in gap.users:
                here = [n for n in first if n in starts] or backward.get(jobs.jobs[first[0]].task.of[1:], [])
                if gap.gather in starts and here and min(map(starts.__getitem__, here)) >= starts[gap.release]:
                    found += [Precedence(n, (gap.gather,), 0) for n in first]
                else:
                    found += [Precedence(gap.release, (n,), 0) for n in last]
    return replace(jobs, precedences=(*jobs.precedences, *found), gaps=(), renumbered=False) if jobs.gaps else jobs


def gathered_at_least(problem: Problem, state: State) -> dict[StageId, int]:
    """Return by stage with gathered parameters how often it must gather in an iteration under way, at the least.

    `state` says what has begun. Every gathering that has begun counts, and one more if the release of the last of them
    has begun and passes that have not begun need the parameters; at least 1.
    """
    begun = {task.of for task in state.ran}
    holder = problem.parameters.holder
    left = state.passes(problem) - begun
    needed = {holder(p.stage) for p in left if uses_parameters(problem, p.kind, p.stage)}
    found = {}
    for stage, own in enumerate(problem.stages):
        if own.gather is not None:
            times = sum(p.kind is UNSHARD and p.stage == stage for p in begun)
            dropped = times and Pass(RESHARD, stage, times - 1) in begun
            found[stage] = max(1, times + bool(dropped and stage in needed))
    return found


def gaps_without_end(jobs: Jobs, running: Collection[JobId]) -> Iterator[tuple[JobId, JobId]]:
    """Yield (last job of a pass, release) for each release in `running` that no gather follows.

    The pass uses the parameters that the release drops, so the job must precede the release.
    """
    for gap in jobs.gaps:
        if gap.release in running and gap.gather not in running:
            yield from ((n, gap.release) for _, last in gap.users for n in last if n in running)


def gathers_in_order(jobs: Jobs) -> Iterator[tuple[ChoiceId, ChoiceId]]:
    """Yield pairs of indices of choices: a gathering that may be left out, and the next one of the same stage.

    The second may be taken only if the first is.
    """
    choices = [(choice.stage, n) for n, choice in enumerate(jobs.choices) if choice.gathers]
    yield from ((a[1], b[1]) for a, b in pairwise(choices) if a[0] == b[0])
