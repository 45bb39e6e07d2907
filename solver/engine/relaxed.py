"""Search of a problem's relaxation to plain passes (one task each, without collectives and activation modes).

Diagrams, beam search and the exact model of plain passes do not support the additional tasks of other problems. The
bounds that they prove for the relaxation are valid for the problem; where nothing else has to be decided, their orders
give orders of the problem. The subsolvers of this search share the time with those of the problem
(`solver.engine.allocation`).
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property

from formulations.jobs.jobs import Jobs
from formulations.jobs.jobs_of_problem import jobs_of
from pipesched.problem.attainable_spans import Value
from pipesched.problem.relaxed.relaxation import RelaxedProblem
from pipesched.problem.relaxed.relaxations import relaxed, with_partners
from pipesched.results.evidence import MemoryOfPartners, MoreMemory, relaxation_of
from pipesched.schedule.timeline import Timeline
from solver.bounds.analytic.catalogue import of_original
from solver.engine.claims import claim
from solver.engine.search import Engine, Search
from solver.tasks.as_stages import StreamDecomposition, stream_decomposition
from solver.tasks.dispatch import expanded


class Relaxed:
    """Search of the relaxed problem `poorer` by `engine`, whose results go to the search of the `whole` problem.

    `search` is that search. Bounds are always passed on. An order of plain passes is expanded to starting orders of the
    whole problem, except where that has activation modes, or where the stages of the relaxed problem are tasks of the
    whole one. `decomposition` says in that case which stage is which task, and is None otherwise. Creating it computes
    the analytic bounds of the relaxed problem and, unless there is a `decomposition`, runs the construction heuristics.
    """

    def __init__(
        self, whole: Search, poorer: RelaxedProblem, decomposition: StreamDecomposition | None, engine: Engine
    ) -> None:
        self._whole, self.poorer, self._decomposition = whole, poorer, decomposition
        plain = poorer.problem if decomposition is None else decomposition.plain
        limits = replace(whole.limits, target=None)
        self.search = Search(plain, limits, lambda _: None, whole.stop, engine, whole.done, within=whole)
        self._proved: Value = 0
        self._seen = list[Timeline]()
        if self._decomposition is None:
            self.search.open()
        self.take_over()

    def take_over(self) -> None:
        """Offer the whole problem's best schedule as one of the relaxed problem, if the latter's stages are tasks."""
        known, search = self._whole.incumbent.timeline, self.search
        if self._decomposition is not None and known is not None and self._is_new(known):
            search.start_from(self._decomposition.order(known))

    def pass_on(self) -> None:
        """Pass on to the search of the whole problem the defects, bounds and schedules found since the last call.

        Schedules are not passed on where stages of the relaxed problem are tasks, or there are activation modes.
        """
        incumbent, whole, problem = self.search.incumbent, self._whole, self._whole.problem
        whole.incumbent.note_defects_of(incumbent)
        found = incumbent.state.certificate
        if incumbent.lower_bound > self._proved and found.evidence is not None:
            self._proved = incumbent.lower_bound
            of_poorer = found if self._decomposition is None else self._decomposition.claim(found)
            claim(whole, [of_original(self.poorer, of_poorer)])
        if self._decomposition is not None or problem.network.has_activation_modes:
            return
        for timeline in (incumbent.timeline, *self.search.starts()):
            if timeline is not None and self._is_new(timeline):
                for schedule in expanded(self._jobs, timeline.schedule):
                    whole.start_from(schedule)

    @cached_property
    def _jobs(self) -> Jobs:
        return jobs_of(self._whole.problem)

    def _is_new(self, timeline: Timeline) -> bool:
        """True if this very timeline was never asked about before; it is recorded, so that each is transferred once."""
        new = not any(timeline is one for one in self._seen)
        self._seen += [timeline] if new else []
        return new


def relaxed_search(search: Search) -> Relaxed | None:
    """Return the search of the problem's relaxation, which has a first schedule.

    None if the problem's passes are plain already, its micro-batches are unequal, its relaxation has no plain form, the
    engine has no subsolvers for it, or no first schedule of it was found.
    """
    if search.problem.view is not None or search.problem.network.scale:
        return None
    poorer = _poorer(search)
    plain = poorer.problem.view is not None
    tasks, engine = (
        (None, search.engine.relaxed) if plain else (stream_decomposition(poorer.problem), search.engine.as_stages)
    )
    if engine is None or not (plain or tasks):
        return None
    found = Relaxed(search, poorer, tasks, engine)
    return found if found.search.incumbent.timeline is not None else None


def _poorer(search: Search) -> RelaxedProblem:
    """Return a relaxed problem: with the memory of partners shared, or else with each device's own memory.

    Memory is shared if some analytic bound of that problem exceeds all bounds of the same kinds for each device's own
    memory.
    """
    of_partners, alone = dict[str, Value](), dict[str, Value]()
    for one in search.incumbent.state.certificates:
        by = relaxation_of(one.evidence)
        if not isinstance(by, MoreMemory):  # proved of other capacities
            best = of_partners if isinstance(by, MemoryOfPartners) else alone
            best[one.kind] = max(one.value_ticks, best.get(one.kind, 0))
    raised = max(of_partners.values(), default=0) > max((alone.get(kind, 0) for kind in of_partners), default=0)
    shared = with_partners(search.problem) if raised else None
    return relaxed(search.problem) if shared is None else shared
