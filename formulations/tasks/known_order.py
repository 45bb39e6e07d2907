"""The order of jobs that their ties alone fix: ancestors of every job, as sets of bits."""

from __future__ import annotations

from graphlib import TopologicalSorter

from formulations.tasks.jobs import Jobs


class KnownOrder:
    """`precedes(x, y)`: whether x ends before y starts in every schedule that runs both and keeps jobs in turn."""

    def __init__(self, jobs: Jobs) -> None:
        self._jobs = jobs
        into: list[list[tuple[int, ...]]] = [[] for _ in jobs.jobs]
        for tie in jobs.ties:
            into[tie.after].append(tie.alternatives)
        for before, after in jobs.in_turn:
            into[after].append((before,))
        every = {n: {one for group in groups for one in group} for n, groups in enumerate(into)}
        self.sequence = list(TopologicalSorter(every).static_order())
        self._before = [0] * len(jobs.jobs)
        self._same_mode = self._jobs_by_mode()
        for n in self.sequence:
            for alternatives in into[n]:
                self._before[n] |= self._of_one(alternatives)

    def _jobs_by_mode(self) -> dict[tuple[int, bool], int]:
        """The jobs that run if a backward runs in a mode."""
        found: dict[tuple[int, bool], int] = {}
        for n, job in enumerate(self._jobs.jobs):
            if job.choice is not None:
                mode = job.choice, job.fused
                found[mode] = found.get(mode, 0) | 1 << n
        return found

    def _of_one(self, alternatives: tuple[int, ...]) -> int:
        """What precedes whichever of the alternatives runs, and those that run only if that one does."""
        sets = [self._before[a] | 1 << a for a in alternatives]
        common, own = sets[0], 0
        for a, before in zip(alternatives, sets, strict=True):
            job = self._jobs.jobs[a]
            common &= before
            if job.choice is not None:
                own |= before & self._same_mode[job.choice, job.fused]
        return common | own

    def precedes(self, x: int, y: int) -> bool:
        return bool(self._before[y] >> x & 1)

    def exclude(self, x: int, y: int) -> bool:
        """Whether never both of them run."""
        one, other = self._jobs.jobs[x], self._jobs.jobs[y]
        return one.choice is not None and one.choice == other.choice and one.fused != other.fused
