"""Collectives and optimizer steps of parameters added to an order of micro-batches' passes, or removed from it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from pipesched.problem.network.task_network import Resource
from pipesched.problem.passes import BW, OF_PARAMETERS, ONCE, Pass, Slot, Task, W
from pipesched.problem.passes_alone import passes_alone
from pipesched.problem.problem import Problem
from pipesched.problem.quantities import StageId
from pipesched.schedule.gather_insertion import with_gathers
from pipesched.schedule.gather_waits import with_gather_waits
from pipesched.schedule.schedule import Schedule
from pipesched.schedule.timeline import Timeline


def completed(problem: Problem, schedule: Schedule) -> Schedule:
    """Return the schedule with the passes for parameters added where runtimes have them.

    Passes on the device's first stream, such as an optimizer step, and those that follow a pass of all stages are at
    the end of the device's order, so that none delays a pass of a micro-batch. All others, such as a reduction on a
    stream of its own, are directly after the stage's last backward (or, of each micro-batch, after that one's), so that
    they begin as early as possible. Passes that are already in the schedule stay. Parameters are gathered as memory
    admits, with the waits that this needs. In orders of tasks, added passes are last on their streams; if gatherings
    are added, the result has no orders of tasks, and of waits only those of gatherings.
    """
    if not problem.network.has_collectives:
        return with_gather_waits(problem, schedule)
    orders: list[tuple[Slot, ...]] = []
    added = list[Pass]()
    for device, order in enumerate(schedule.orders):
        found: list[Slot] = []
        at_end: list[Slot] = []
        ending = {place: stage for stage, place in _last_backwards(problem, order).items()}
        for place, slot in enumerate(order):
            found.append(slot)
            stage = ending.get(place)
            for p in (*_of_microbatches(problem, slot), *(() if stage is None else _once(problem, stage))):
                if p not in schedule.pass_set:
                    last = problem.tasks_of(*p[:2])[0].stream == problem.streams[0] or _place_among_shared(problem, p)
                    (at_end if last else found).append((p,))
                    added.append(p)
        # Stages that no micro-batch walks reduce and step too.
        idle = {problem.parameters.holder(s) for s in problem.placement.stages_of[device]} - {*ending.values()}
        for p in (p for stage in sorted(idle) for p in _once(problem, stage) if p not in schedule.pass_set):
            at_end.append((p,))
            added.append(p)
        orders.append((*found, *sorted(at_end, key=lambda slot: _place_among_shared(problem, slot[0]))))
    task_orders = _with_added(problem, schedule, sorted(added, key=partial(_place_among_shared, problem)))
    whole = Schedule(tuple(orders), schedule.name, task_orders, schedule.waits)
    return with_gather_waits(problem, with_gathers(problem, whole))


def _with_added(problem: Problem, schedule: Schedule, added: Sequence[Pass]) -> dict[Resource, tuple[Task, ...]]:
    """Return the orders of tasks with added passes at the end of their streams; empty where the schedule has none."""
    streams = {where: list(tasks) for where, tasks in schedule.task_orders.items()}
    for p in added if streams else ():
        where = problem.resources.on_device(problem.device(p), problem.tasks_of(*p[:2])[0].stream)
        streams.setdefault(where, []).append(Task(p))
    return {where: tuple(tasks) for where, tasks in streams.items()}


def _once(problem: Problem, stage: StageId) -> list[Pass]:
    kinds = [one.kind for one in problem.stages[stage].once if not one.each_microbatch]
    return [Pass(kind, stage, n) for kind in kinds for n in problem.network.numbers[kind, stage]]


def _place_among_shared(problem: Problem, p: Pass) -> int:
    """Return the place of a pass relative to the passes that run once for all stages, such as the gradient norm.

    The place is 0 for a pass before all of these, 1 for the first of these, 2 for a pass between the first and the
    second, and so on.
    """
    shared = [one.kind for stage in problem.stages for one in stage.once if one.of_all]
    return sum((ONCE.index(kind) < ONCE.index(p.kind)) + (ONCE.index(kind) <= ONCE.index(p.kind)) for kind in shared)


def _of_microbatches(problem: Problem, slot: Slot) -> Iterator[Pass]:
    """Yield the reductions of single micro-batches that follow the backwards of this slot."""
    for p in slot:
        if p.kind in (W, BW):
            place = problem.microbatches_of[p.stage].index(p.microbatch)
            yield from (Pass(one.kind, p.stage, place) for one in problem.stages[p.stage].once if one.each_microbatch)


def uncompleted(schedule: Schedule) -> Schedule:
    """Return the schedule without passes for parameters, and then also without orders of tasks and waits.

    The schedule itself if it has no such passes.
    """
    kept = tuple(tuple(slot for slot in order if slot[0].kind not in OF_PARAMETERS) for order in schedule.orders)
    return schedule if kept == schedule.orders else Schedule(kept, schedule.name)


def of_microbatches(timeline: Timeline) -> Timeline:
    """Return the timeline of the passes of micro-batches alone; itself where no others run."""
    problem, schedule = timeline.problem, timeline.schedule
    if not problem.network.has_collectives:
        return timeline

    def kept(*tasks: Task) -> bool:
        return all(task.of.kind not in OF_PARAMETERS for task in tasks)

    orders = {where: tuple(filter(kept, tasks)) for where, tasks in schedule.task_orders.items()}
    return Timeline(
        passes_alone(problem),
        Schedule(
            uncompleted(schedule).orders,
            schedule.name,
            {where: tasks for where, tasks in orders.items() if tasks},
            tuple(wait for wait in schedule.waits if kept(*wait)),
        ),
        {task: start for task, start in timeline.starts.items() if kept(task)},
    )


def _last_backwards(problem: Problem, order: Sequence[Slot]) -> dict[StageId, int]:
    """Return by stage that holds parameters the index, in a device's order, of the last W or BW that uses them."""
    found: dict[int, int] = {}
    for place, slot in enumerate(order):
        for p in slot:
            if p.kind in (W, BW):
                found[problem.parameters.holder(p.stage)] = place
    return found
