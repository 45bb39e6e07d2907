"""Subsolver: core-guided CP-SAT on the exact model, from the lower bound upwards.

Each conflict with a value raises the bound, and clauses learnt from one value refute the next ones quickly. A search
that is stopped loses nearly all of this, so it is suspended between slices, where it reports a bound, and continued.
The first report above the proved bound takes 4 to 7 times as long as building the model on lines of 16 and 17 devices,
and each later one some hundredths of that; so a slice lasts at least ten times as long as building the model took. A
search without a report for so long, and for twice its slice, is ended; the next one restarts from the bound proved by
then. With several cores it runs on a dedicated one, where nothing is lost.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, replace
from functools import partial
from math import inf
from threading import Event

from formulations.variables.literal_count import literal_count
from formulations.variables.literals import TooLong
from pipesched.deadline import Deadline, within
from pipesched.problem.attainable_spans import Value
from pipesched.schedule.timeline import Timeline
from solver.backends.exact_search import Callback, improve
from solver.backends.interruptible import Asking
from solver.backends.paced import Paced
from solver.engine.destructive_slice import fraction_left, refute
from solver.engine.improving_model import improving_model, most_literals, take
from solver.engine.kernels import Kernels
from solver.engine.search import Search
from solver.engine.slices import Slice, Work
from solver.limits import Limits
from solver.parameters import tunable, tuned


@dataclass(frozen=True)
@tunable
class CoreGuided:
    """Subsolver that raises the bound by core-guided CP-SAT on one core, until the exact model has a solution.

    A slice is so long that building the model takes at most `stating_share` of it; for that it is lengthened to at most
    `longest_share` of the time limit.
    """

    stating_share: float = tuned(
        0.1, "of a slice at most, that stating the model took", 0.01, 1,
        "the first report takes 4 to 7 times as long as stating on lines of 16 and 17 devices",
    )  # fmt: skip
    longest_share: float = tuned(0.2, "of the time limit, up to which a slice is lengthened for that", 0.01, 1)
    name: str = "CP-SAT from the bound up"
    parallel: bool = False
    restarts: bool = False

    def serves(self, search: Search) -> bool:
        """True if the exact model has order literals and building it fits into the remaining time.

        Without literals nothing is learnt that refutes another value.
        """
        problem = search.problem
        few = literal_count(problem, range(problem.devices)) <= most_literals(problem)
        return few and not search.takes_long_to_state

    def kernels(self, _: Search) -> Kernels | None:
        return None

    def work(self, search: Search) -> Work:
        slice_: Slice | None = yield
        try:
            while slice_ is not None:
                if search.clock.counts_work:
                    _improve(search, slice_.limits(search.limits), search.stop, partial(take, search))
                    slice_ = yield
                else:
                    slice_ = yield from _from_what_is_proved(self, search, slice_)
        except TooLong as reason:
            _note(search, reason)

    def alone(self, search: Search) -> None:
        """Search on a dedicated core until nothing is left to do, restarting where others have proved more.

        A remaining gap of less than a tick is refuted in fractions of a tick.
        """
        clock = search.clock
        try:
            while not (search.over() or fraction_left(search) or _improve_alone(search, self.name)):
                pass
        except TooLong as reason:
            _note(search, reason)
        if fraction_left(search):
            refute(search, Slice(clock, clock.seconds, clock.left()), self.name)


def _note(search: Search, reason: TooLong) -> None:
    search.incumbent.note(f"CP-SAT was not asked for a schedule of the lower bound: {reason}")


def _improve_alone(search: Search, by: str) -> bool:
    """Run one CP-SAT search on a dedicated core, from the bound proved so far; True if no further search is useful.

    That is so if CP-SAT completed, or found nothing for as long as the time that is left. The search is also ended, to
    be restarted, when others have had a better bound for as long as it ran until they got it; not sooner, since with
    its learnt clauses it may soon pass them. Results are reported under the name `by`. Raises `TooLong` if CP-SAT's
    integers cannot represent the times.
    """
    clock, incumbent = search.clock, search.incumbent
    began, since, reached = clock.seconds, inf, incumbent.lower_bound
    gained = began

    def callback(timeline: Timeline | None, bound: Value) -> None:
        nonlocal reached, gained
        before = incumbent.state
        take(search, timeline, bound, by)
        if incumbent.state is not before:
            gained = clock.seconds
        if incumbent.lower_bound > before.lower_bound:
            reached = incumbent.lower_bound

    def overtaken() -> bool:
        nonlocal since
        since = min(since, clock.seconds) if incumbent.lower_bound > reached else inf
        return clock.seconds - since > since - began

    def in_vain() -> bool:
        return clock.seconds - gained > clock.left()

    complete = _improve(search, search.limits, Asking(lambda: search.over() or overtaken() or in_vain()), callback)
    return complete or in_vain()


def _from_what_is_proved(own: CoreGuided, search: Search, slice_: Slice) -> Generator[None, Slice, Slice | None]:
    """Search from the proved bound upwards, slice after slice, until others have proved more.

    Returns the slice with which to restart; None if CP-SAT completed, or there was no time to build the model. Raises
    `TooLong` if CP-SAT's integers cannot represent the times.
    """
    clock, reached = search.clock, search.incumbent.lower_bound
    began, stated, heard, least = clock.seconds, False, 0.0, 0.0  # the last report, and the shortest slice then

    def callback(timeline: Timeline | None, bound: Value) -> None:
        nonlocal reached, stated, heard, least
        take(search, timeline, bound)
        reached = search.incumbent.lower_bound  # may be higher, as no value in between is attainable
        heard = clock.seconds
        stating = 0.0 if stated else heard - began
        paced.is_set()
        stated, least = True, max(least, min(stating / own.stating_share, clock.share(own.longest_share)))

    def over() -> bool:
        return clock.seconds > slice_.began + max(slice_.seconds, least)

    def silent() -> bool:
        return stated and clock.seconds > max(heard, slice_.began) + max(2 * slice_.seconds, least)

    paced = Paced(search.stop, lambda _: _improve(search, search.limits, paced.at_once, callback))
    try:
        while paced.run(over, silent):
            if paced.ended:
                return None
            slice_ = yield
            if search.incumbent.lower_bound > reached:
                return slice_
    finally:
        paced.close()
    return (yield)


def _improve(search: Search, limits: Limits, stop: Event, callback: Callback) -> bool:
    """Build the model and search it on one core within the time left, reporting to `callback`.

    `callback(timeline, bound)` gets each better schedule or bound, and both at the end (None: no schedule; in ticks).
    True if CP-SAT completed; False too if there was no time to build the model. Raises `TooLong` if CP-SAT's integers
    cannot represent the times.
    """
    model = within(Deadline.after(search.clock.left(), stop), partial(improving_model, search))
    if model is not None:
        limits = replace(limits, workers=1)
        outcome = improve(model, limits, search.clock.left(), stop, callback, core_guided=True)
        callback(outcome.timeline, outcome.bound)
        return outcome.complete
    return False
