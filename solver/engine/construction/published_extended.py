"""Construction heuristic for very long problems: extend published schedules of fewer micro-batches by whole periods.

With hundreds of thousands of passes it takes seconds to construct one published schedule pass by pass, although its
steady state repeats one period.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from heuristics.catalogue import HEURISTICS, Heuristic
from pipesched.deadline import Deadline, within
from pipesched.problem.problem import Problem
from solver.cyclic.replication import best_extendable, repeated_note, shortened
from solver.engine.search import Search
from solver.parameters import tunable, tuned
from solver.published import candidate


@dataclass(frozen=True)
@tunable
class PublishedExtended:
    """Extend published schedules of fewer micro-batches, least idle time first, until one can be extended.

    Its `share` of the time limit is large, since other construction heuristics find less on so many passes. It does not
    apply to unequal micro-batches, whose schedules have no period.
    """

    share: float = tuned(0.8, "of the time limit", 0, 1)
    name: str = "published schedules extended"

    def applies(self, search: Search) -> bool:
        if search.chains is not None or not search.very_long or search.done() or search.clock.allowed() <= 0:
            return False
        return shortened(search.problem) is not None

    def run(self, search: Search) -> None:
        """Offer extended schedules until one is found, the gap is closed or the time is over.

        If the search is done with an extended schedule, a note says so and the search ends.
        """
        short, clock, incumbent = shortened(search.problem), search.clock, search.incumbent
        assert short is not None
        end = clock.seconds + clock.allowed(self.share)
        for heuristic in _extended_in_order(search.problem):
            before, offered = incumbent.timeline, None
            incumbent.enter(self.name)
            with incumbent.defects_noted(heuristic.name):
                offered = within(
                    Deadline.after(end - clock.seconds, search.stop), partial(_offer, search, short, heuristic)
                )
            if search.done() and incumbent.timeline is not before:
                incumbent.note(repeated_note(short))
                search.end()
            if offered or search.done() or clock.seconds >= end:
                return


def _extended_in_order(problem: Problem) -> list[Heuristic]:
    """Return the published schedules to extend: those that lose least time first, promising searched ones last.

    Where some device has no memory for 2p-1 of its largest activations (p devices), schedules that may keep up to 2p of
    them (`high_memory`) follow the others.
    """
    stages, room = problem.placement.stages_of, problem.room
    most = 2 * problem.devices - 1
    asked = [most * max((problem.stages[s].activation for s in of_device), default=0) for of_device in stages]
    scarce = any(have is not None and have < wanted for have, wanted in zip(room, asked, strict=True))
    places = [(one, one.priorities.long_problems) for one in HEURISTICS if one.priorities.long_problems is not None]
    ordered = sorted(places, key=lambda place: (scarce and place[0].priorities.high_memory, place[1]))
    searched = (
        one for one in HEURISTICS if one.priorities.long_problems is None and one.searched and one.priorities.promising
    )
    return [*(one for one, _ in ordered), *searched]


def _offer(search: Search, short: Problem, heuristic: Heuristic) -> bool:
    """Offer a heuristic's schedule of the short problem extended to all micro-batches; True if it was offered.

    False if that schedule does not apply, does not fit the memory, or has no part that repeats. It replaces the
    incumbent only if it is better.
    """
    found = candidate(short, heuristic)
    extendable = best_extendable([found.timeline]) if found.fits and found.timeline is not None else None
    if extendable is not None:
        search.incumbent.phase = f"{heuristic.name} of {short.microbatches} micro-batches"
        search.offer_order(extendable.over(search.problem))
    return extendable is not None
