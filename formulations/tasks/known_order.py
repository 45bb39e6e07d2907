"""The order of jobs that their precedences alone fix: ancestors of every job, as sets of bits."""

from __future__ import annotations

from graphlib import TopologicalSorter

from formulations.tasks.jobs import Jobs


class KnownOrder:
    """`precedes(x, y)`: whether x ends before y starts in every schedule that runs both and keeps micro-batch order.

    `numbered` says whether micro-batches are numbered as they begin, where that is all that can be said of their order.
    """

    def __init__(self, jobs: Jobs, numbered: bool = False) -> None:
        self._jobs = jobs
        into: list[list[tuple[int, ...]]] = [[] for _ in jobs.jobs]
        optional: list[list[int]] = [[] for _ in jobs.jobs]
        for arc in jobs.precedences:
            if arc.optional:
                optional[arc.after] += arc.alternatives
            else:
                into[arc.after].append(arc.alternatives)
        for before, after in (*jobs.consecutive, *(jobs.alike if numbered else ())):
            into[after].append((before,))
        every = {n: {one for group in (*groups, optional[n]) for one in group} for n, groups in enumerate(into)}
        self.sequence = list(TopologicalSorter(every).static_order())
        self._before = [0] * len(jobs.jobs)
        self._same_mode = self._jobs_by_mode()
        for n in self.sequence:
            for alternatives in into[n]:
                self._before[n] |= self._of_one(alternatives)
            for one in optional[n]:
                self._before[n] |= self._with(one)

    def _jobs_by_mode(self) -> dict[tuple[int, int], int]:
        """The jobs that run if a choice is an option."""
        found: dict[tuple[int, int], int] = {}
        for n, job in enumerate(self._jobs.jobs):
            if job.choice is not None:
                mode = job.choice, job.option
                found[mode] = found.get(mode, 0) | 1 << n
        return found

    def _of_one(self, alternatives: tuple[int, ...]) -> int:
        """What precedes whichever of the alternatives runs, and those that run only if that one does."""
        common, own = self._before[alternatives[0]] | 1 << alternatives[0], 0
        for a in alternatives:
            common &= self._before[a] | 1 << a
            own |= self._with(a)
        return common | own

    def _with(self, n: int) -> int:
        """The job itself and what precedes it, of that what runs only if it does."""
        job, before = self._jobs.jobs[n], self._before[n] | 1 << n
        return before if job.choice is None else before & self._same_mode[job.choice, job.option]

    def precedes(self, x: int, y: int) -> bool:
        return bool(self._before[y] >> x & 1)

    def exclude(self, x: int, y: int) -> bool:
        """Whether never both of them run."""
        one, other = self._jobs.jobs[x], self._jobs.jobs[y]
        return one.choice is not None and one.choice == other.choice and one.option != other.option
