"""Gathers of parameters during list scheduling: started when a ready pass needs them, released to free memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import dataclass, field

from formulations.jobs.quantities import JobId, TimeSteps
from pipesched.problem.passes import RESHARD, UNSHARD, Pass
from pipesched.schedule.gathered import uses_parameters
from solver.tasks.job_graph import JobGraph

Rank = tuple[float, ...]


@dataclass
class _Stage:
    """A stage's remaining gathers and releases (jobs, in order), and the state of its parameters while jobs are placed.

    `there` is True if they are gathered, since step `since`; `used` is the end of their last use. `left` is the number
    of jobs that still compute with them, `open` the passes of which some tasks are placed and others are not.
    """

    gathers: list[JobId] = field(default_factory=list)
    releases: list[JobId] = field(default_factory=list)
    there: bool = False
    since: TimeSteps = 0
    used: TimeSteps = 0
    left: int = 0  # jobs that compute with them
    open: set[Pass] = field(default_factory=set)  # those of which a part has been placed, and another has not


class GathersOnDemand:
    """Rules by which list scheduling places gathers, releases, and the passes that need the parameters.

    A gather starts when a ready pass needs it, a release after the last use of the parameters or where memory is short.
    `wanted` and `to_drop` return the jobs of `graph` that may start now, `place` records that one has.
    """

    def __init__(self, graph: JobGraph) -> None:
        self._jobs, self._stages = graph.jobs, dict[int, _Stage]()
        problem = graph.jobs.problem
        self._further = graph.jobs.most_further_gathers
        self._of: dict[int, _Stage] = {}
        self._parts = Counter(graph.jobs.jobs[n].task.of for n in graph.running)
        for n in graph.running:
            kind, stage, _ = graph.jobs.jobs[n].task.of
            holder = problem.parameters.holder(stage)
            uses = uses_parameters(problem, kind, stage)
            if problem.stages[holder].gather is not None and (uses or kind in (UNSHARD, RESHARD)):
                parameters = self._of[n] = self._stages.setdefault(holder, _Stage())
                parameters.gathers += [n] * (kind is UNSHARD)
                parameters.releases += [n] * (kind is RESHARD)
                parameters.left += uses
        for parameters in self._stages.values():
            parameters.gathers.sort(key=self._number)
            parameters.releases.sort(key=self._number)
            more = len(parameters.releases) > len(parameters.gathers)  # gathered before, and dropped by now or there
            if more and parameters.gathers and all(parameters.releases[0] != gap.release for gap in graph.jobs.gaps):
                del self._of[parameters.releases.pop(0)]
            parameters.there = len(parameters.releases) > len(parameters.gathers)

    def waits(self, before: JobId, after: JobId) -> bool:
        """True if these rules replace an arc from job `before` to job `after`: between a gather or release and a user.

        A user is a job that computes with the parameters.
        """
        return self._of.get(before) is self._of.get(after, self) and self._uses(before) != self._uses(after)

    def wanted(self, ready: Collection[JobId]) -> list[tuple[JobId, TimeSteps]]:
        """Return (job, earliest start in steps) of ready jobs that the rules allow to start now, in the given order.

        A job that needs parameters may start once they are gathered. A release may start after the last use of its
        parameters, once no job is left that needs them. A gather may start at any step once a ready job needs it; an
        optional one only while more gathers are allowed.
        """
        found = ((n, self._since(n, ready)) for n in ready)
        return [(n, since) for n, since in found if since is not None]

    def _since(self, n: JobId, ready: Collection[JobId]) -> TimeSteps | None:
        parameters = self._of.get(n)
        if parameters is None:
            return 0
        if self._uses(n):
            return parameters.since if parameters.there else None
        if n in parameters.releases:
            return parameters.used if parameters.there and not parameters.left else None
        return 0 if self._may_gather(n) and self._wanting(n, ready) else None

    def _may_gather(self, n: JobId) -> bool:
        return not self._of[n].there and (self._jobs.jobs[n].choice is None or self._further != 0)

    def _wanting(self, n: JobId, ready: Collection[JobId]) -> list[JobId]:
        """Return the ready jobs that need the parameters that gather `n` brings."""
        return [one for one in ready if self._of.get(one) is self._of[n] and self._uses(one)]

    def to_drop(self, ready: Collection[JobId]) -> list[tuple[JobId, TimeSteps]]:
        """Return a release of the parameters that the fewest ready jobs need, as (job, earliest start in steps).

        The list is empty if none may be released. A release makes room in memory where no wanted job fits; the
        parameters are gathered again later.
        """
        able = [
            parameters
            for parameters in self._stages.values()
            if parameters.there
            and parameters.left
            and not parameters.open
            and parameters.gathers
            and self._may_again(parameters)
        ]
        wanted = {id(parameters): sum(self._of.get(n) is parameters for n in ready) for parameters in able}
        found = min(able, key=lambda parameters: wanted[id(parameters)], default=None)
        return [] if found is None or found.releases[0] not in ready else [(found.releases[0], found.used)]

    def _may_again(self, parameters: _Stage) -> bool:
        return self._jobs.jobs[parameters.gathers[0]].choice is None or self._further != 0

    def unwanted(self, ready: Collection[JobId]) -> list[tuple[JobId, TimeSteps]]:
        """Return (job, earliest start 0) of the gathers that no ready job needs, to be started if nothing else can."""
        return [(n, 0) for n in ready if self._gathers(n) and self._of[n].left and self._may_gather(n)]

    def order(
        self, start: TimeSteps, n: JobId, ready: Collection[JobId], rank: Callable[[JobId, TimeSteps], Rank]
    ) -> Rank:
        """Return the rank by which job `n` is chosen at this start; the lowest goes first.

        It is `rank(n, start)`, with gathers after other jobs of equal first entry, and the job's number at its end. A
        gather has the least rank of the `ready` jobs that need its parameters.
        """
        gathers = self._gathers(n)
        needing = (self._wanting(n, ready) or [n]) if gathers else [n]
        first, *others = min(rank(one, start) for one in needing)
        return (first, gathers, *others, n)

    def optional(self, n: JobId) -> bool:
        """True for a job that need not be placed: a further gather of parameters, or the release before it."""
        parameters = self._of.get(n)
        return parameters is not None and not self._uses(n) and self._jobs.jobs[n].choice is not None

    def _gathers(self, n: JobId) -> bool:
        return self._jobs.jobs[n].task.of.kind is UNSHARD

    def place(self, n: JobId, end: TimeSteps) -> None:
        """Update the state for job `n`, which has been placed and ends at step `end`."""
        parameters, p = self._of.get(n), self._jobs.jobs[n].task.of
        if parameters is None:
            return
        if self._uses(n):
            parameters.used, parameters.left = max(parameters.used, end), parameters.left - 1
            self._parts[p] -= 1
            (parameters.open.add if self._parts[p] else parameters.open.discard)(p)
        elif self._gathers(n):
            parameters.there, parameters.since, parameters.used = True, end, max(parameters.used, end)
            parameters.gathers.remove(n)
            self._further = self._further and self._further - (self._jobs.jobs[n].choice is not None)
        else:
            parameters.there = False
            parameters.releases.remove(n)

    def _uses(self, n: JobId) -> bool:
        kind, stage, _ = self._jobs.jobs[n].task.of
        return uses_parameters(self._jobs.problem, kind, stage)

    def _number(self, n: JobId) -> int:
        return self._jobs.jobs[n].task.of.microbatch
