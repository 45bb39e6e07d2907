"""Collectives and optimizer steps of parameters added to an order of micro-batches' passes, or removed from it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pipesched.problem.passes import BW, OF_PARAMETERS, Pass, Slot, Task, W
from pipesched.problem.problem import Problem
from pipesched.schedule.gather_rule import with_gathers
from pipesched.schedule.gather_waits import with_gather_waits
from pipesched.schedule.schedule import Schedule


def completed(problem: Problem, schedule: Schedule) -> Schedule:
    """Return the schedule with each stage's reduction directly after its last backward, and its step at the device's
    end.

    This is how runtimes do it: reductions begin as early as possible, also those of each micro-batch, and no step
    delays a pass. Passes already present stay. Parameters are gathered as memory admits.
    """
    if not problem.network.has_collectives:
        return with_gather_waits(problem, schedule)
    orders: list[tuple[Slot, ...]] = []
    streams = {where: list(tasks) for where, tasks in schedule.task_orders.items()}
    for device, order in enumerate(schedule.orders):
        found: list[Slot] = []
        at_end: list[Slot] = []
        ending = {place: stage for stage, place in _last_backwards(problem, order).items()}
        for place, slot in enumerate(order):
            found.append(slot)
            stage = ending.get(place)
            for p in (*_of_microbatches(problem, slot), *(() if stage is None else _once(problem, stage))):
                if p not in schedule.pass_set:
                    stream = problem.tasks_of(*p[:2])[0].stream
                    (at_end if stream == problem.streams[0] else found).append((p,))
                    if streams:
                        streams.setdefault(problem.resources.on_device(device, stream), []).append(Task(p))
        # Stages that no micro-batch walks reduce and step too.
        idle = {problem.parameters.holder(s) for s in problem.placement.stages_of[device]} - {*ending.values()}
        for p in (p for stage in sorted(idle) for p in _once(problem, stage) if p not in schedule.pass_set):
            at_end.append((p,))
            if streams:
                stream = problem.tasks_of(*p[:2])[0].stream
                streams.setdefault(problem.resources.on_device(device, stream), []).append(Task(p))
        orders.append((*found, *at_end))
    task_orders = {where: tuple(tasks) for where, tasks in streams.items()}
    whole = Schedule(tuple(orders), schedule.name, task_orders, schedule.waits)
    return with_gather_waits(problem, with_gathers(problem, whole))


def _once(problem: Problem, stage: int) -> list[Pass]:
    kinds = [one.kind for one in problem.stages[stage].once if not one.each_microbatch]
    return [Pass(kind, stage, n) for kind in kinds for n in problem.network.numbers[kind, stage]]


def _of_microbatches(problem: Problem, slot: Slot) -> Iterator[Pass]:
    """Yield the reductions of single micro-batches that follow the backwards of this slot."""
    for p in slot:
        if p.kind in (W, BW):
            place = problem.microbatches_of[p.stage].index(p.microbatch)
            yield from (Pass(one.kind, p.stage, place) for one in problem.stages[p.stage].once if one.each_microbatch)


def uncompleted(schedule: Schedule) -> Schedule:
    """Return the order of the passes of micro-batches only."""
    kept = tuple(tuple(slot for slot in order if slot[0].kind not in OF_PARAMETERS) for order in schedule.orders)
    return schedule if kept == schedule.orders else Schedule(kept, schedule.name)


def _last_backwards(problem: Problem, order: Sequence[Slot]) -> dict[int, int]:
    """Return for each stage that has parameters the position of the last backward for them."""
    found: dict[int, int] = {}
    for place, slot in enumerate(order):
        for p in slot:
            if p.kind in (W, BW):
                found[problem.parameters.holder(p.stage)] = place
    return found
