"""Gathers of parameters during list scheduling: started when a ready pass needs them, released for memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import dataclass, field

from pipesched.problem.passes import RESHARD, UNSHARD, Pass
from pipesched.schedule.gathered import uses_parameters
from solver.tasks.job_graph import JobGraph

Rank = tuple[float, ...]


@dataclass
class _Stage:
    """A stage's remaining gathers and releases, and the state of its parameters.

    `there` is True if they are gathered, since time `since`; `used` is the end of their last use.
    """

    gathers: list[int] = field(default_factory=list)
    releases: list[int] = field(default_factory=list)
    there: bool = False
    since: int = 0
    used: int = 0
    left: int = 0  # jobs that compute with them
    open: set[Pass] = field(default_factory=set)  # those of which a part has been placed, and another has not


class GathersOnDemand:
    """Rules by which list scheduling places gathers, releases, and the passes that need the parameters."""

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
                own = self._of[n] = self._stages.setdefault(holder, _Stage())
                own.gathers += [n] * (kind is UNSHARD)
                own.releases += [n] * (kind is RESHARD)
                own.left += uses
        for own in self._stages.values():
            own.gathers.sort(key=self._number)
            own.releases.sort(key=self._number)
            more = len(own.releases) > len(own.gathers)  # gathered before, and dropped by now or there
            if more and own.gathers and all(own.releases[0] != gap.release for gap in graph.jobs.gaps):
                del self._of[own.releases.pop(0)]
            own.there = len(own.releases) > len(own.gathers)

    def waits(self, before: int, after: int) -> bool:
        """Return True if an arc is handled here: between a gather or release and a compute job."""
        return self._of.get(before) is self._of.get(after, self) and self._uses(before) != self._uses(after)

    def wanted(self, ready: Collection[int]) -> list[tuple[int, int]]:
        """Return the ready jobs that may start, each with its earliest start."""
        found = ((n, self._since(n, ready)) for n in ready)
        return [(n, since) for n, since in found if since is not None]

    def _since(self, n: int, ready: Collection[int]) -> int | None:
        own = self._of.get(n)
        if own is None:
            return 0
        if self._uses(n):
            return own.since if own.there else None
        if n in own.releases:
            return own.used if own.there and not own.left else None
        return 0 if self._may_gather(n) and self._wanting(n, ready) else None

    def _may_gather(self, n: int) -> bool:
        return not self._of[n].there and (self._jobs.jobs[n].choice is None or self._further != 0)

    def _wanting(self, n: int, ready: Collection[int]) -> list[int]:
        """Return the ready jobs that need the parameters that a job gathers."""
        return [one for one in ready if self._of.get(one) is self._of[n] and self._uses(one)]

    def to_drop(self, ready: Collection[int]) -> list[tuple[int, int]]:
        """Return a release, with its earliest start, of the parameters that the fewest ready jobs need.

        It makes room in memory; the parameters are gathered again later.
        """
        able = [own for own in self._stages.values()
                if own.there and own.left and not own.open and own.gathers and self._may_again(own)]  # fmt: skip
        wanted = {id(own): sum(self._of.get(n) is own for n in ready) for own in able}
        found = min(able, key=lambda own: wanted[id(own)], default=None)
        return [] if found is None or found.releases[0] not in ready else [(found.releases[0], found.used)]

    def _may_again(self, own: _Stage) -> bool:
        return self._jobs.jobs[own.gathers[0]].choice is None or self._further != 0

    def unwanted(self, ready: Collection[int]) -> list[tuple[int, int]]:
        """Return gathers that no ready pass needs, to be started if nothing else can."""
        return [(n, 0) for n in ready if self._gathers(n) and self._of[n].left and self._may_gather(n)]

    def order(self, start: int, n: int, ready: Collection[int], rank: Callable[[int, int], Rank]) -> Rank:
        """Return the rank of a job at its start; a gather has that of the pass that needs it, after equal passes."""
        gathers = self._gathers(n)
        own = (self._wanting(n, ready) or [n]) if gathers else [n]
        first, *others = min(rank(one, start) for one in own)
        return (first, gathers, *others, n)

    def optional(self, n: int) -> bool:
        """Return True for a job that need not be placed: an additional gather or its release."""
        own = self._of.get(n)
        return own is not None and not self._uses(n) and self._jobs.jobs[n].choice is not None

    def _gathers(self, n: int) -> bool:
        return self._jobs.jobs[n].task.of.kind is UNSHARD

    def place(self, n: int, end: int) -> None:
        """Update the state for a placed job that ends at `end`."""
        own, p = self._of.get(n), self._jobs.jobs[n].task.of
        if own is None:
            return
        if self._uses(n):
            own.used, own.left = max(own.used, end), own.left - 1
            self._parts[p] -= 1
            (own.open.add if self._parts[p] else own.open.discard)(p)
        elif self._gathers(n):
            own.there, own.since, own.used = True, end, max(own.used, end)
            own.gathers.remove(n)
            self._further = self._further and self._further - (self._jobs.jobs[n].choice is not None)
        else:
            own.there = False
            own.releases.remove(n)

    def _uses(self, n: int) -> bool:
        kind, stage, _ = self._jobs.jobs[n].task.of
        return uses_parameters(self._jobs.problem, kind, stage)

    def _number(self, n: int) -> int:
        return self._jobs.jobs[n].task.of.microbatch
