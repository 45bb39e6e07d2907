"""Construction heuristic for passes of several tasks: start tasks as they become ready, by given orders of passes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass

from formulations.jobs.jobs_of_problem import jobs_of
from heuristics.building.memory_saving import full_offload, half_offload, uniform_recompute
from pipesched.deadline import Deadline, within
from pipesched.errors import Deadlock, DoesNotApply
from pipesched.problem.passes import SAVING
from pipesched.problem.passes_alone import passes_alone
from pipesched.problem.problem import Problem
from pipesched.schedule.metrics import measure
from pipesched.schedule.schedule import Schedule
from solver.construction.grouped import in_groups
from solver.construction.list_scheduling import list_schedules, sequential
from solver.engine.search import Search
from solver.parameters import tunable, tuned
from solver.tasks.dispatch import expanded
from solver.tasks.memory_decisions import rules, with_decisions


@dataclass(frozen=True)
@tunable
class TaskSchedules:
    """First schedules task by task: from published orders of passes, then from list schedules of passes.

    The very first runs one micro-batch after the other, which fits most often. Where some schedule is known already,
    problems with more than `most_passes` passes are skipped, since each schedule takes seconds. The entry None of
    `rooms` is unlimited memory. The other entries multiply the memory, for orders whose activations are then offloaded
    or recomputed. It takes `share` of the time limit, or `least_seconds` even beyond it.
    """

    most_passes: int = tuned(5_000, "passes, beyond which each schedule takes seconds", 100, 10**6)
    share: float = tuned(0.2, "of the time limit", 0, 1)
    least_seconds: float = tuned(1.0, "s, even beyond the time limit", 0, 10)
    rooms: tuple[int | None, ...] = tuned(
        (1, 2, 3, None), "times the memory, for orders whose activations are then offloaded or recomputed", 1, 10
    )
    name: str = "list scheduling of tasks"

    def applies(self, search: Search) -> bool:
        few = search.passes <= self.most_passes or search.incumbent.timeline is None
        return few and search.problem.view is None

    def run(self, search: Search) -> None:
        seconds = search.clock.allowed(self.share)
        within(Deadline.after(max(seconds, self.least_seconds), search.stop), lambda: self._try(search))

    def _try(self, search: Search) -> None:
        # Of few passes most rules give orders that another one gave.
        jobs, tried = jobs_of(search.problem), set[object]()
        for order in self._orders(search):
            passes = order.orders, tuple(order.task_orders.items()), order.waits
            if passes in tried:
                continue
            tried.add(passes)
            for schedule in expanded(jobs, order):
                search.start_from(schedule)
            if search.done():
                return

    def _orders(self, search: Search) -> Iterator[Schedule]:
        """Yield orders of passes on every device, from each of which schedules of tasks are made.

        They are one micro-batch after the other (in groups too, with gathered parameters), then the published schedules
        and list schedules. With modes of activations only orders that keep every activation are taken, and each gets
        modes by several rules for the memory.
        """
        if search.problem.network.has_activation_modes:
            published = [one.timeline for one in search.candidates if one.timeline is not None]
            published = [timeline for timeline in published if _keeps_all(timeline.schedule)]
            published.sort(key=lambda timeline: measure(timeline).makespan_ticks)
            yield from _decided(search.problem, [timeline.schedule for timeline in published], self.rooms)
            return
        passes = passes_alone(search.problem)
        yield sequential(passes)
        if any(stage.gather for stage in search.problem.stages):
            yield from (in_groups(search.problem, size) for size in range(2, search.problem.microbatches + 1))
        for one in search.candidates:
            if one.timeline is not None:
                yield one.timeline.schedule
        try:
            yield from list_schedules(passes)
        except Deadlock:
            return


def _keeps_all(schedule: Schedule) -> bool:
    """True if the schedule offloads and recomputes nothing."""
    return all(p.kind not in SAVING for p in schedule.passes())


def _decided(problem: Problem, published: Sequence[Schedule], rooms: Sequence[int | None]) -> Iterator[Schedule]:
    """Yield orders of passes with some activations offloaded or recomputed, by rules that save memory.

    Each is made from an order that keeps every activation: first one micro-batch after the other, then `published`
    orders, then list schedules for the devices' memory times each factor of `rooms` (None: unlimited).
    """
    kept = passes_alone(problem).keeping_activations()
    found = (with_decisions(problem, sequential(kept), rule) for rule in rules(problem))
    yield from (one for one in found if one is not None)
    for order in published:
        for published_rule in (full_offload, half_offload, uniform_recompute):
            with suppress(DoesNotApply):
                yield published_rule(problem, order)
        found = (with_decisions(problem, order, rule) for rule in rules(problem))
        yield from (one for one in found if one is not None)
    for times in rooms:
        room = [None if own is None or times is None else own * times for own in problem.room]
        with suppress(Deadlock):
            for order in list_schedules(kept.with_room(room)):
                decided = (with_decisions(problem, order, rule) for rule in rules(problem))
                yield from (one for one in decided if one is not None)
