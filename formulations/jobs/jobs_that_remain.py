"""Unfinished jobs of an iteration under way, with their release times and the memory that is left to them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from formulations.jobs.gathers import gathered_at_least
from formulations.jobs.jobs import JobMemory, Jobs, Precedence, UngatheredInterval
from formulations.jobs.jobs_of_problem import jobs_of
from pipesched.problem.problem import Problem
from pipesched.problem.state import State


def jobs_that_remain(problem: Problem, state: State) -> Jobs:
    """Return the jobs that have not ended at `state`, for scheduling the remainder of an iteration again.

    Steps still count from the iteration's time 0: no job is released before now. A running task becomes a job of its
    remaining time, and is the first on its stream. If some devices have not begun, the span of these jobs may be a
    fraction of a tick. Raises ValueError for unequal micro-batches.
    """
    gathered = gathered_at_least(problem, state)
    since = [state.opening(problem, device) for device in range(problem.devices)]
    opened = [device for device, start in enumerate(since) if start is not None]
    whole = jobs_of(problem, state.passes(problem), state.saving_options(problem), gathered, opened)
    steps = tuple(None if start is None else start * whole.scale for start in since)
    counts = problem.objective.by_device
    return replace(_Remaining(whole, state).jobs(), opened=steps if counts else ())


class _Remaining:
    """Conversion of all jobs to those that have not ended: `_number` maps old job numbers to new ones.

    `_running` are the old numbers of jobs that have begun and not ended, `_ran` the intervals of all that have begun.
    """

    def __init__(self, whole: Jobs, state: State) -> None:
        self._whole, self._state = whole, state
        self._ran = {n: state.ran[job.task] for n, job in enumerate(whole.jobs) if job.task in state.ran}
        left = [n for n in range(len(whole.jobs)) if n not in self._ran or self._ran[n].end > state.now]
        self._number = {n: m for m, n in enumerate(left)}
        self._running = [n for n in left if n in self._ran]
        self._room = list(whole.room)

    def jobs(self) -> Jobs:
        """Return the unfinished jobs, renumbered.

        Jobs that have ended leave release times, occupied memory and decided gathers to them.
        """
        whole, now = self._whole, self._state.now
        jobs = [whole.jobs[n] for n in self._number]
        for n in self._running:
            jobs[self._number[n]] = whole.jobs[n]._replace(steps=(self._ran[n].end - now) * whole.scale)
        self._release = [now * whole.scale] * len(jobs)
        ties, gaps = self._gaps()
        precedences, holdings = tuple(self._precedences([*whole.precedences, *ties])), tuple(self._holdings())
        return replace(
            whole, jobs=tuple(jobs), precedences=precedences, holdings=holdings, room=tuple(self._room),
            release=tuple(self._release), gaps=gaps,
        )  # fmt: skip

    def _gaps(self) -> tuple[list[Precedence], tuple[UngatheredInterval, ...]]:
        """Return (precedences, gaps): the consequences of gathers so far, and the gaps that are still to be decided.

        A gap whose release has begun, and users that have begun, are decided: they become precedences, in old job
        numbers. The gaps are in new numbers.
        """
        ties, gaps, number = list[Precedence](), list[UngatheredInterval](), self._number
        for gap in self._whole.gaps:
            begun = [user for user in gap.users if any(n in self._ran for n in user[0])]
            others = [user for user in gap.users if user not in begun]
            if gap.release in self._ran:
                # The gather runs, since it has begun or other passes need it.
                ties += [Precedence(n, (gap.gather,), 0) for first, _ in others for n in first]
                continue
            ties += [Precedence(gap.release, (n,), 0) for _, last in begun for n in last]
            users = tuple((tuple(number[n] for n in a), tuple(number[n] for n in b)) for a, b in others)
            gaps.append(UngatheredInterval(number[gap.release], number[gap.gather], users))
        return ties, tuple(gaps)

    def _precedences(self, whole: Iterable[Precedence]) -> Iterator[Precedence]:
        """Yield the precedences between unfinished jobs, in new job numbers.

        `whole` are those of all jobs, in old ones. Raises release times by the ends of ended jobs. On each stream the
        jobs that have not begun also follow the running one.
        """
        number, scale = self._number, self._whole.scale
        for one in whole:
            if one.after in self._ran:
                continue
            after = number[one.after]
            ends = [self._ran[n].end * scale + one.lag for n in one.alternatives if n in self._ran]
            self._release[after] = max(self._release[after], *ends, 0)
            here = tuple(number[n] for n in one.alternatives if n in number)
            if here:
                yield one._replace(after=after, alternatives=here)
        for n in self._running:
            for where in self._whole.jobs[n].resources:
                for other in self._whole.on[where]:
                    if other not in self._ran:
                        yield Precedence(number[other], (number[n],), 0)

    def _holdings(self) -> Iterator[JobMemory]:
        """Yield memory still to be taken or freed.

        Subtract from the capacities what is in use by passes that have begun.
        """
        for one in self._whole.holdings:
            first, last = (tuple(self._number[n] for n in on if n in self._number) for on in (one.first, one.last))
            begun, gives = any(n in self._ran for n in one.first), one.gives if last else 0
            room = self._room[one.pool]
            if begun and room is not None:
                self._room[one.pool] = room - one.takes + one.gives - gives
            takes = 0 if begun else one.takes
            if takes or gives:
                # If that pass has begun, it is known to run.
                where = self._number.get(one.where, (last if begun else first)[0])
                yield JobMemory(one.pool, takes, gives, last if begun else first, last, where)
