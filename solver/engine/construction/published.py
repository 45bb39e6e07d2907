"""Construction heuristic: published schedules, the best of which that fits is the first incumbent.

Of several with the same value the first one tried is kept: promising ones are tried first, then others by name.
"""

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
class PublishedSchedules:
    """Simulate published schedules, within `share` of the time limit.

    In problems with more than `compare_up_to_passes` passes it ends once the search is done (the gap is closed); in
    smaller ones all are simulated for the comparison shown to the user. With `very_long` it applies only to very long
    problems. A schedule gets `first_seconds` while none is known, even beyond the time limit.
    """

    share: float = tuned(0.2, "of the time limit", 0, 1)
    first_seconds: float = tuned(1.0, "s for a schedule while none is known, even beyond the time limit", 0, 10)
    compare_up_to_passes: float = SEARCH.very_long
    very_long: bool = False
    name: str = "published schedules"

    def applies(self, search: Search) -> bool:
        # If even the steps before this one used up the time, one micro-batch after the other is the fastest schedule to
        # make.
        late = search.stop.is_set() or search.clock.allowed() <= 0
        return not (late and search.very_long) and (search.very_long or not self.very_long)

    def run(self, search: Search) -> None:
        """Simulate and offer one published schedule after the other.

        Each may use half of the heuristic's share of the time, or all of it in very long problems if a formula gives
        its order. The offer is also validated within that time, except that of the first schedule that fits, which must
        not be lost.
        """
        clock, incumbent = search.clock, search.incumbent
        tried = {one.name for one in search.candidates}
        for heuristic in sorted(HEURISTICS, key=_slow_last if search.very_long else _promising_first):
            if heuristic.name in tried or self._improves_what_does_not_fit(search, heuristic):
                continue
            incumbent.enter(self.name)
            part = 1 if search.very_long and heuristic.priorities.long_problems is not None else 2
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
        """True in a problem of many passes if the schedule that the heuristic improves did not fit the memory."""
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
    """Return the sort key for very long problems: orders by formula, promising searches, others, improvements."""
    if heuristic.improves is not None:
        return 3, 0
    place = heuristic.priorities.long_problems
    if place is not None:
        return 0, place
    return (1 if heuristic.searched and heuristic.priorities.promising else 2), 0


def _promising_first(heuristic: Heuristic) -> int:
    """Return the sort key: 0 for a promising schedule, 2 for another one that improves some schedule, else 1."""
    if heuristic.priorities.promising:
        return 0
    return 1 if heuristic.improves is None else 2
