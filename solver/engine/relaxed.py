"""The search of a problem's relaxation to plain passes.

Diagrams, beam search and the exact model of plain passes prove and find much that they cannot say where there is more
to order. What they prove without it holds with it; where nothing has to be chosen besides, orders of the one give
orders of the other. Subsolvers of that search share the time with those of the problem (`solver.engine.allocation`).
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property

from formulations.jobs.jobs import Jobs
from formulations.jobs.jobs_of_problem import jobs_of
from pipesched.problem.attainable_spans import Value
from pipesched.problem.relaxed.relaxation import RelaxedProblem
from pipesched.problem.relaxed.relaxations import relaxed
from pipesched.schedule.timeline import Timeline
from solver.bounds.analytic.catalogue import of_original
from solver.engine.claims import claim
from solver.engine.search import Engine, Search
from solver.tasks.as_stages import Cut, cut
from solver.tasks.dispatch import expanded


class Relaxed:
    """A `search` of the relaxed problem with the clock of the `whole` one, to which `pass_on` gives new results.

    Without collectives of parameters, arcs between chains, and activation modes, an order of passes may also be one of
    the problem, and then gives a start. Where tasks are stages (stream decomposition), only bounds carry over.
    """

    def __init__(self, whole: Search, poorer: RelaxedProblem, tasks_as_stages: Cut | None, engine: Engine) -> None:
        self._whole, self._poorer, self._cut = whole, poorer, tasks_as_stages
        plain = poorer.problem if tasks_as_stages is None else tasks_as_stages.plain
        limits = replace(whole.limits, target=None)
        self.search = Search(plain, limits, lambda _: None, whole.stop, engine, whole.done, clock=whole.clock)
        self._proved: Value = 0
        self._seen = list[Timeline]()
        if self._cut is None:
            self.search.open()
        self.take_over()

    def take_over(self) -> None:
        """The best schedule of the whole, as one of the relaxed problem: none that ends above it counts."""
        known, own = self._whole.incumbent.timeline, self.search
        if self._cut is not None and known is not None and self._is_new(known):
            own.start_from(self._cut.order(known))

    def pass_on(self) -> None:
        """Pass on the results found since the last time."""
        own, whole, problem = self.search.incumbent, self._whole, self._whole.problem
        whole.incumbent.note_defects_of(own)
        found = own.state.certificate
        if own.lower_bound > self._proved and found.evidence is not None:
            self._proved = own.lower_bound
            of_poorer = found if self._cut is None else self._cut.claim(found)
            claim(whole, [of_original(self._poorer, of_poorer)])
        if self._cut is not None or problem.network.has_activation_modes:
            return
        for timeline in (own.timeline, *self.search.starts()):
            if timeline is not None and self._is_new(timeline):
                for schedule in expanded(self._jobs, timeline.schedule):
                    whole.start_from(schedule)

    @cached_property
    def _jobs(self) -> Jobs:
        return jobs_of(self._whole.problem)

    def _is_new(self, timeline: Timeline) -> bool:
        """True if the timeline has not been passed on before."""
        new = not any(timeline is one for one in self._seen)
        self._seen += [timeline] if new else []
        return new


def relaxed_search(search: Search) -> Relaxed | None:
    """None where the engine has no subsolvers for it, passes are plain already, or no such problem is known."""
    if search.problem.view is not None or search.problem.network.scale:
        return None
    poorer = relaxed(search.problem)
    plain = poorer.problem.view is not None
    tasks, engine = (None, search.engine.relaxed) if plain else (cut(poorer.problem), search.engine.as_stages)
    if engine is None or not (plain or tasks):
        return None
    found = Relaxed(search, poorer, tasks, engine)
    return found if found.search.incumbent.timeline is not None else None
