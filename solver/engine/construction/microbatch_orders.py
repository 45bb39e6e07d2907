"""Construction heuristic for unequal micro-batches: published schedules with the micro-batches in other orders."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

from heuristics.building.microbatch_orders import orders, renumbered
from pipesched.deadline import Deadline, within
from pipesched.errors import Deadlock
from pipesched.problem.chains.microbatch_chains import MicrobatchChains
from pipesched.schedule.chain_timelines import timeline_back, timeline_into
from pipesched.schedule.timeline import Timeline
from pipesched.simulation.simulator import simulate
from pipesched.validation.validator import validate
from solver.engine.search import Search
from solver.parameters import tunable, tuned


@dataclass(frozen=True)
@tunable
class MicrobatchOrders:
    """Let the micro-batches enter in other orders, in each of the best published schedules that fit.

    Local search may start from each result. `tried` of those schedules are taken, within `share` of the time limit, or
    `least_seconds` even beyond it.
    """

    share: float = tuned(0.2, "of the time limit", 0, 1)
    least_seconds: float = tuned(1.0, "s, even beyond the time limit", 0, 10)
    tried: int = tuned(6, "published schedules, best first", 1, 50)
    name: str = "orders of micro-batches"

    def applies(self, search: Search) -> bool:
        chains = search.chains
        return chains is not None and not chains.of.walks.queues and len(chains.of.placement.chains) == 1

    def run(self, search: Search) -> None:
        within(
            Deadline.after(max(self.least_seconds, search.clock.allowed(self.share)), search.stop),
            lambda: self._try(search),
        )

    def _try(self, search: Search) -> None:
        assert search.chains is not None
        fitting = [one for one in search.candidates if one.fits and one.timeline is not None]
        value = search.problem.objective
        fitting.sort(key=lambda one: one.metrics.value_ticks(value) if one.metrics is not None else 0)
        for one in fitting[: self.tried]:
            assert one.timeline is not None
            search.start_from_timeline(one.timeline)
            for timeline in _reordered(search.chains, one.timeline):
                if search.done():
                    return
                search.start_from(timeline.schedule)


def _reordered(chains: MicrobatchChains, known: Timeline) -> list[Timeline]:
    """Return timelines of a schedule in which the micro-batches enter in other orders, if they fit the memory.

    `known` and the results are timelines of `chains.problem`, which has a chain for each factor. Passes that shared a
    slot run one after the other in the results. An order that deadlocks is left out.
    """
    own = timeline_back(chains, known).schedule
    found = []
    for order in orders(chains.of):
        with suppress(Deadlock):
            timeline = simulate(chains.of, renumbered(own, order, own.name))
            if not validate(timeline):
                found.append(timeline_into(chains, timeline))
    return found
