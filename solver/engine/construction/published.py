"""Construction heuristic: the published schedules; the best that fits is the first incumbent."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from heuristics.catalogue import HEURISTICS, Heuristic
from pipesched.deadline import Deadline, within
from pipesched.results.candidate import Candidate
from solver.engine.search import SEARCH, Search
from solver.parameters import tunable, tuned
from solver.published import candidate


@dataclass(frozen=True)
@tunable
class Published:
    """No more are tried after a share of the time, nor, in problems of many passes, once nothing is left to search.

    Up to so many passes all are simulated for the user to compare with even once the optimum is proved. With
    `very_long` it is for such problems alone.
    """

    share: float = tuned(0.2, "of the time limit", 0, 1)
    first_seconds: float = tuned(1.0, "s for a schedule while none is known, even beyond the time limit", 0, 10)
    compare_up_to_passes: float = SEARCH.very_long
    very_long: bool = False
    name: str = "published schedules"

    def applies(self, search: Search) -> bool:
        # Where even what runs before this has had no time, one micro-batch after the other is the fastest of all.
        late = search.stop.is_set() or search.clock.allowed() <= 0
        return not (late and search.very_long) and (search.very_long or not self.very_long)

    def run(self, search: Search) -> None:
        """One after the other: the slowest leaves time for the others; in problems of many passes the best leaves none.

        What it offers is judged in that time too; but not where it is the first that fits, which must not be lost.
        """
        clock, incumbent = search.clock, search.incumbent
        tried = {one.name for one in search.candidates}
        for heuristic in sorted(HEURISTICS, key=_slow_last if search.very_long else _promising_first):
            if heuristic.name in tried or self._improves_what_does_not_fit(search, heuristic):
                continue
            incumbent.enter(self.name)
            part = 1 if search.very_long and heuristic.standing.written is not None else 2
            seconds = max(clock.allowed(self.share) / part, self.first_seconds if incumbent.timeline is None else 0.0)
            with incumbent.defects_noted(heuristic.name):
                found = within(Deadline.after(seconds, search.stop), partial(_try, search, heuristic))
                if found is not None and found.fits:
                    offer = partial(_offer, search, found)
                    offer() if incumbent.timeline is None else within(Deadline.after(seconds, search.stop), offer)
            late = clock.seconds > clock.share(self.share)
            proved = search.done() and search.passes > self.compare_up_to_passes
            if search.stop.is_set() or late or proved:
                return

    def _improves_what_does_not_fit(self, search: Search, heuristic: Heuristic) -> bool:
        """True for a schedule that improves one that does not fit: for many passes that takes seconds without use."""
        if heuristic.improves is None or search.passes <= self.compare_up_to_passes:
            return False
        return any(one.name == heuristic.improves and not one.fits for one in search.candidates)


def _try(search: Search, heuristic: Heuristic) -> Candidate:
    found = candidate(search.problem, heuristic, search.chains)
    search.candidates += (found,)
    if found.defect:
        search.incumbent.note(found.reason)
    return found


def _offer(search: Search, found: Candidate) -> None:
    if found.timeline is not None:
        search.incumbent.phase = found.name
        search.incumbent.offer(found.timeline)
        if search.problem.objective.by_device:
            search.offer_order(found.timeline.schedule)


def _slow_last(heuristic: Heuristic) -> tuple[int, int]:
    """Sort key if schedules take seconds: written-down ones by place, promising searches, others, improvements last."""
    if heuristic.improves is not None:
        return 3, 0
    written = heuristic.standing.written
    if written is not None:
        return 0, written
    return (1 if heuristic.searched and heuristic.standing.promising else 2), 0


def _promising_first(heuristic: Heuristic) -> int:
    """First those that mostly do best, or are of the problem's own memory; last those that improve another."""
    if heuristic.standing.promising:
        return 0
    return 1 if heuristic.improves is None else 2
