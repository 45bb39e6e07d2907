"""Constraint: the memory of a device or host never exceeds its capacity, whatever the durations.

A schedule is within its capacity under all durations if every unit that a pass takes is free from the start or from a
pass that frees it and that it waits for, no unit twice (a resource flow: Artigues, Michelon and Reusser 2003). Waits
for passes that have ended change no start, so starts have such a flow if and only if the level is within the capacity
at every one of them: free memory is assigned in order of time. So at the start of each pass that takes memory, the
memory taken so far less the memory freed is at most the capacity; `schedule_of_starts` sets the waits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate

from ortools.sat.python import cp_model

from formulations.constraints.catalogue import CONSTRAINTS, Constraint
from formulations.variables.literals import Linear, Truth, negation
from formulations.variables.model_variables import Model
from formulations.variables.operations import Operation, OperationMemory
from pipesched.deadline import asking
from pipesched.problem.passes import RESHARD, UNSHARD
from pipesched.problem.quantities import DeviceId, MemorySteps
from pipesched.schedule.metrics import memory_steps
from pipesched.schedule.timeline import Timeline


def check(timeline: Timeline) -> bool:
    """True if the level of every memory, and the number of gathered stages of every device, is within its limit."""
    for number, (capacity, _) in enumerate(timeline.problem.network.reservoirs):
        if capacity is not None and max(level for _, level in memory_steps(timeline, number)) > capacity:
            return False
    window = timeline.problem.parameters.window
    return window is None or all(_most_gathered(timeline, d) <= window for d in range(timeline.problem.devices))


def _most_gathered(timeline: Timeline, device: DeviceId) -> int:
    """Return the largest number of stages of a device whose parameters are gathered at one time."""
    passes = timeline.schedule.passes_on(device)
    changes = [(timeline.start(p), 1) for p in passes if p.kind is UNSHARD]
    changes += [(timeline.end(p), -1) for p in timeline.schedule.passes_on(device) if p.kind is RESHARD]
    return max(accumulate((change for _, change in sorted(changes)), initial=0))


def post(model: Model) -> None:
    """Post the constraint: with order literals one row per pass that takes memory, else CP-SAT's cumulative."""
    if model.order is None:
        _cumulative(model)
    else:
        post_rows(model)


def post_rows(model: Model, outside: Callable[[OperationMemory], MemorySteps] = lambda _: 0) -> None:
    """Post for each pass that takes memory that the level at its start is within the capacity of the pool.

    Pools that a device outside the model uses have no rows. `outside` returns the level of passes outside the model at
    that start, for models of a part of a schedule. Orders forced by memory are known and need no literal: on one
    resource the no-overlap constraint states them, otherwise a precedence is posted here.
    """
    for x, y in model.known.forced:
        if set(model.operations.resources(x)).isdisjoint(model.operations.resources(y)):
            model.cp.add(model.start[y] >= model.end(x))
    for pool, room in enumerate(model.jobs.room):
        if room is None or not model.devices.issuperset(model.jobs.pools[pool]):
            continue
        here = [one for one in model.operations.memory_changes if one.pool == pool]
        runs = {one.where: model.runs(model.operations.of[one.where]) for one in here}
        takers = [(one, runs[one.where]) for one in here if one.takes]
        givers = [(one, runs[one.where]) for one in here if one.gives]
        for taker, _ in asking(takers):
            taken = sum(one.takes * _may_have_begun(model, one, taker, own) for one, own in takers if one is not taker)
            given = sum(one.gives * _has_ended(model, one, taker, own) for one, own in givers if one is not taker)
            _add(model, taker, outside(taker) + taker.takes + taken - given, room)


def _add(model: Model, taker: OperationMemory, level: Linear, room: MemorySteps) -> None:
    """Post `level` <= `room` for a pass that takes memory, enforced only if its job runs."""
    where = model.where_jobs(taker.where)
    if not isinstance(level, int):
        model.cp.add(level <= room).only_enforce_if(where)
    elif level > room:
        model.cp.add_bool_or([negation(runs) for runs in where])


def _has_ended(model: Model, giver: OperationMemory, taker: OperationMemory, runs: Truth) -> Truth:
    """Return True, False or a literal that implies that the pass `giver` has ended completely before `taker` begins.

    `runs`: whether the giver runs. A backward that runs in one overlapped block with the taker has not ended: it
    releases its memory at the block's end.
    """
    pairs = model.known.in_order(giver.last, taker.first)
    if isinstance(pairs, bool):
        return pairs and runs
    if len(pairs) == 1 and runs is True and (by_order := model.before(*pairs[0])) is not None:
        return by_order
    literal = model.cp.new_bool_var("")
    if runs is not True:
        model.cp.add_implication(literal, runs)
    for x, y in pairs:
        model.cp.add(model.start[y] >= model.end(x)).only_enforce_if([literal, *model.where(y)])
        if (by_order := model.before(x, y)) is not None:
            model.cp.add_implication(literal, by_order)
    return literal


def _may_have_begun(model: Model, other: OperationMemory, taker: OperationMemory, runs: Truth) -> Truth:
    """Return True, False or a literal: the pass `other` runs and may take its memory no later than `taker`.

    `runs`: whether the other pass runs. If the literal is false, it certainly starts later. A pass that begins with
    several tasks takes its memory with the first of them; the first listed task of the taker represents it. A pass that
    starts in one block with the taker takes nothing, nor does the taker in another mode.
    """
    own = taker.first[0]
    if other.first[0] == own and other.where != taker.where:
        return False
    pairs = model.known.in_order((own,), other.first)
    if pairs is True:
        return False
    if pairs is False:  # the tasks of a pass all run in the same mode
        return not model.operations.exclude(own, other.first[0]) and runs
    later = [x for _, x in pairs]
    if len(later) == 1 and runs is True and (by_order := model.before(later[0], own)) is not None:
        return by_order
    literal = model.cp.new_bool_var("")
    for x in later:
        where = [negation(literal), *model.where(_operation(model, other))]
        by_order = model.before(own, x)
        if by_order is not None:
            model.cp.add_bool_or([by_order]).only_enforce_if(where)
        else:
            model.cp.add(model.start[x] >= model.start[own] + 1).only_enforce_if(where)
    return literal


def _operation(model: Model, one: OperationMemory) -> Operation:
    return model.operations.of[one.where]


def _cumulative(model: Model) -> None:
    """Post each pool as CP-SAT's cumulative: a demand from the start of the pass that takes it to the end of its giver.

    Memory that a B of a split backward takes in addition is occupied until the last giver ends.
    """
    for pool, room in enumerate(model.jobs.room):
        if room is None:
            continue
        intervals, demands = list[cp_model.IntervalVar](), list[int]()
        for of_pass in model.operations.memory_by_pass(pool):
            for taker, giver, amount in _with_givers(model, of_pass):
                intervals.append(_interval(model, taker, giver))
                demands.append(amount)
        model.cp.add_cumulative(intervals, demands, room)


def _with_givers(
    model: Model, of_pass: Sequence[OperationMemory]
) -> Iterator[tuple[OperationMemory, OperationMemory | None, MemorySteps]]:
    """Yield (taker, giver, amount): which pass frees the memory that another takes.

    `of_pass` are those of a micro-batch on a stage. Amounts are in the problem's steps of memory, assigned to the
    earliest giver first. Giver None: the memory is never freed. Memory that a pass takes and frees itself has the pass
    as taker and giver. Raises ValueError if a pass is optional, as it runs in some modes only.
    """
    if not all(model.operations.always(_operation(model, one)) for one in of_pass):
        raise ValueError("a model without order literals, of passes that may not run")
    yield from ((one, one, one.running) for one in of_pass if one.running)
    givers = [one for one in of_pass if one.gives > one.running]
    for place, taker in enumerate(one for one in of_pass if one.takes > one.running):
        stays = _stays(model, taker)
        left = taker.takes - taker.running - stays
        for giver in givers[-1:] if place else givers:
            amount = min(left, giver.gives - giver.running)
            left -= amount
            if amount:
                yield taker, giver, amount
        if stays:
            yield taker, None, stays


def _stays(model: Model, taker: OperationMemory) -> MemorySteps:
    """Return how much of the memory taken by `taker` no pass frees; 0 for a pool that is not a device's."""
    task = model.jobs.jobs[taker.where].task
    return model.jobs.problem.network.until_end.get(task.of[:2], 0) if taker.pool < model.jobs.problem.devices else 0


def _interval(model: Model, taker: OperationMemory, giver: OperationMemory | None) -> cp_model.IntervalVar:
    """Return the optional interval from the start of `taker` to the end of `giver`, or to the horizon if it is None."""
    size, end = (model.cp.new_int_var(0, model.horizon, "") for _ in range(2))
    if giver is None:
        model.cp.add(end == model.horizon)
    for last in giver.last if giver is not None else ():
        model.cp.add(end >= model.end(last))
    start, where = model.start[taker.first[0]], model.where_jobs(taker.where)
    return model.cp.new_optional_interval_var(start, size, end, where[0] if where else True, "")


CONSTRAINTS.register(Constraint("memory", check, post))
