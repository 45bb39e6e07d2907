"""The order of jobs that their ties alone fix: ancestors of every job, as sets of bits."""

from __future__ import annotations

from collections.abc import Sequence

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
        self.sequence = _topological(into)
        self._before = [0] * len(jobs.jobs)
        self._same_way = self._ways()
        for n in self.sequence:
            for alternatives in into[n]:
                self._before[n] |= self._of_one(alternatives)

    def _ways(self) -> dict[tuple[int, bool], int]:
        """The jobs that run if a backward runs in a mode."""
        found: dict[tuple[int, bool], int] = {}
        for n, job in enumerate(self._jobs.jobs):
            if job.choice is not None:
                way = job.choice, job.fused
                found[way] = found.get(way, 0) | 1 << n
        return found

    def _of_one(self, alternatives: tuple[int, ...]) -> int:
        """What precedes whichever of the alternatives runs, and those that run only if that one does."""
        sets = [self._before[a] | 1 << a for a in alternatives]
        common, own = sets[0], 0
        for a, before in zip(alternatives, sets, strict=True):
            job = self._jobs.jobs[a]
            common &= before
            if job.choice is not None:
                own |= before & self._same_way[job.choice, job.fused]
        return common | own

    def precedes(self, x: int, y: int) -> bool:
        return bool(self._before[y] >> x & 1)

    def exclude(self, x: int, y: int) -> bool:
        """Whether never both of them run."""
        one, other = self._jobs.jobs[x], self._jobs.jobs[y]
        return one.choice is not None and one.choice == other.choice and one.fused != other.fused


def _topological(into: Sequence[Sequence[tuple[int, ...]]]) -> list[int]:
    """The jobs in an order in which each follows all that it may wait for."""
    after: list[list[int]] = [[] for _ in into]
    missing = [0] * len(into)
    for n, groups in enumerate(into):
        for before in {a for group in groups for a in group}:
            after[before].append(n)
            missing[n] += 1
    sequence = [n for n, count in enumerate(missing) if count == 0]
    for n in sequence:
        for later in after[n]:
            missing[later] -= 1
            if missing[later] == 0:
                sequence.append(later)
    return sequence
