"""The least value of a tiny problem: one CP-SAT model of the starts of its tasks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise, product
from math import lcm
from typing import Any, NamedTuple

from ortools.sat.python import cp_model

from benchmarks.matrix.exact.cells import BACKWARD, FORWARD, Cell, Shape, block_time
from benchmarks.matrix.exact.memory_rows import add_memory
from benchmarks.matrix.exact.parameter_rows import add_once
from benchmarks.matrix.exact.reading import shape_of
from benchmarks.matrix.exact.tasks import Change, Literal, Pass, Tasks

# Seconds, and CP-SAT's own units of work, for one problem; most take a hundredth of it.
MOST_WORK = 20.0
# Beyond, CP-SAT's objective, a float, may be several units off: it calls optimal what is not.
_EXACT = 2**53
_EXACTLY = Fraction(0)
# The largest number of CP-SAT's variables.
_LARGEST = 2**62


class Exact(NamedTuple):
    """Between what the optimum lies; None for both where nothing fits.

    The two differ only where passes without length stand at one instant, of which the model knows no order.
    """

    least: Fraction | None
    most: Fraction | None


class TooLargeError(ValueError):
    """The model was not solved within its work."""


def optimum(
    document: Mapping[str, Any],
    most_work: float = MOST_WORK,
    *,
    rounded: Fraction = _EXACTLY,
    reserved: Fraction = _EXACTLY,
) -> Exact:
    """The optimum of a plain document of any objective but a period, of all schedules that leave `reserved` memory free
    on every device.

    Where memory was rounded by up to a share of each capacity, it is between that with more room and that with less.
    """
    shape = shape_of(document)
    shape = replace(shape, rooms=[None if room is None else room - reserved for room in shape.rooms])
    if any(room is not None and room < 0 for room in shape.rooms):
        return Exact(None, None)
    # What is taken at one instant is there together, unless a pass without length gives it back at that instant.
    lasting = 0 not in _times(shape)
    low = _least(_with_room(shape, 1 + rounded), lasting, most_work)
    same = not rounded and lasting
    return Exact(low, low if same else _least(_with_room(shape, 1 - rounded), True, most_work))


def _with_room(shape: Shape, times: Fraction) -> Shape:
    """The shape with so many times the capacity of devices and hosts."""
    rooms = [None if room is None else room * times for room in shape.rooms]
    hosts = [host._replace(capacity=host.capacity * times) for host in shape.hosts]
    return replace(shape, rooms=rooms, hosts=hosts)


def _times(shape: Shape) -> list[Fraction]:
    """Durations of tasks."""
    specs = [s for c in shape.cells for own in (c.forward, c.backward, c.weight or (), c.fused) for s in own]
    specs += [s for one in shape.once for s in (one.step, one.gather) if s is not None]
    times = [spec.time for spec in specs] + [w.time for c in shape.cells for w in c.recomputations]
    times += [] if shape.norm is None else [shape.norm.time]
    times += [one.reduce.time / one.buckets for one in shape.once if one.reduce is not None]
    times += [time for c in shape.cells if c.copies for time in c.copies[:2]]
    return times + [one for c in shape.cells for one in (c.overlapped, c.saves) if one is not None]


def _least(shape: Shape, strict: bool, most_work: float) -> Fraction | None:
    times = [*_times(shape), *(tie.lag for tie in shape.ties)]
    # The least span of an order is a mean over the devices of a cycle of paths.
    unit = lcm(*(time.denominator for time in times)) * (lcm(*range(1, shape.devices + 1)) if shape.span else 1)
    in_all = sum(times, Fraction(0)) + sum(
        (one.reduce.time * (len(shape.cells) if one.each_microbatch else 1) for one in shape.once if one.reduce),
        Fraction(0),
    )
    in_all += sum((one.most * one.gather.time for one in shape.once if one.gather), Fraction(0))
    if in_all * unit > _LARGEST:
        raise TooLargeError("times of too many digits")
    tasks = Tasks(shape, unit, int(in_all * unit) + 1)
    alone: dict[tuple[Cell, str], Literal] = {}
    passes = {cell: _cell(tasks, cell, alone) for cell in shape.cells}
    _blocks(tasks, passes, alone)
    _ties(tasks, passes)
    for line in shape.lines:
        for (a, b), kind in product(pairwise(line), (FORWARD, BACKWARD)):
            tasks.cp.add(passes[a][kind].begin <= passes[b][kind].begin)
    own = [(one, [cell for cell in shape.cells if cell.holder == one.holder]) for one in shape.once]
    add_once(tasks, own, passes)
    add_memory(tasks, strict)
    for intervals in tasks.streams.values():
        tasks.cp.add_no_overlap(intervals)
    value = _minimise(tasks)
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.max_deterministic_time = most_work
    solver.parameters.max_time_in_seconds = most_work
    status = solver.solve(tasks.cp)
    if status == cp_model.INFEASIBLE:
        return None
    if status != cp_model.OPTIMAL:
        raise TooLargeError(solver.status_name(status))
    least = int(solver.value(value))
    tasks.cp.clear_objective()  # type: ignore[no-untyped-call]
    while least > _EXACT and status != cp_model.INFEASIBLE:
        tasks.cp.add(value < least)
        status = solver.solve(tasks.cp)
        if status not in (cp_model.INFEASIBLE, cp_model.OPTIMAL, cp_model.FEASIBLE):
            raise TooLargeError(solver.status_name(status))
        least = least if status == cp_model.INFEASIBLE else int(solver.value(value))
    return Fraction(least, unit)


def _minimise(tasks: Tasks) -> Any:
    value = tasks.time()
    firsts: dict[int, Any] = {}
    for device, start, end, runs in tasks.all:
        if tasks.shape.span:
            since = firsts.setdefault(device, tasks.time())
            tasks.cp.add(since <= start).only_enforce_if(runs)
            tasks.cp.add(value >= end - since).only_enforce_if(runs)
        else:
            tasks.cp.add(value >= end).only_enforce_if(runs)
    tasks.cp.minimize(value)
    return value


def _cell(tasks: Tasks, cell: Cell, alone: dict[tuple[Cell, str], Literal]) -> dict[str, Pass]:
    """The passes of a cell; whether those that may be in a block run by themselves goes into `alone`."""
    cp, memory = tasks.cp, f"device {cell.device}"
    split = cp.new_bool_var("") if cell.weight is not None else ~tasks.true
    if cell.overlapped is None and cell.saves is None:
        forward = tasks.in_a_row(cell.device, cell.forward, tasks.true)
        whole = tasks.in_a_row(cell.device, cell.fused, ~split)
    else:
        alone |= {(cell, "F"): cp.new_bool_var(""), (cell, "BW"): cp.new_bool_var("")}
        by_itself = tasks.in_a_row(cell.device, cell.forward, alone[cell, "F"])
        forward = _perhaps_in_a_block(tasks, by_itself, tasks.true, alone[cell, "F"])
        by_itself = tasks.in_a_row(cell.device, cell.fused, alone[cell, "BW"])
        whole = _perhaps_in_a_block(tasks, by_itself, ~split, alone[cell, "BW"])
    found = {"F": forward, "BW": whole}
    begin, needs, end, received = tasks.time(), tasks.time(), tasks.time(), tasks.time()
    if whole.received is not None:
        cp.add(received == whole.received).only_enforce_if(~split)
    cp.add(begin == whole.begin).only_enforce_if(~split)
    cp.add(needs == whole.needs).only_enforce_if(~split)
    cp.add(end == whole.end).only_enforce_if(~split)
    space, kept = cell.workspace, cell.until_end
    tasks.take(
        memory, Change(forward.begin, cell.activation + cell.kept_for_later + space[0] + kept[0], tasks.true, cell, 0)
    )
    tasks.give(memory, Change(forward.end, space[0], tasks.true, cell, 1))
    # A full backward is B and then W: it never holds the workspace of both.
    both = max(space[1:])
    tasks.take(memory, Change(whole.begin, both + kept[1] + kept[2], ~split, cell, 4))
    tasks.give(memory, Change(whole.end, cell.activation + cell.freed_of_pieces + both, ~split, cell, 5))
    if cell.weight is not None:
        back = found["B"] = tasks.in_a_row(cell.device, cell.backward, split)
        if back.received is not None:
            cp.add(received == back.received).only_enforce_if(split)
        cp.add(begin == back.begin).only_enforce_if(split)
        cp.add(needs == back.needs).only_enforce_if(split)
        cp.add(end == back.end).only_enforce_if(split)
        parts, last = [tasks.task(cell.device, s.stream, s.time, split) for s in cell.weight], tasks.time()
        first = tasks.time()
        for spec, task in zip(cell.weight, parts, strict=True):
            cp.add(task.start >= (back.end if spec.after is None else back.ends[spec.after])).only_enforce_if(split)
            cp.add(last >= task.end).only_enforce_if(split)
            cp.add(first <= task.start).only_enforce_if(split)
        found["W"] = Pass([t.start for t in parts], parts[0].start, [t.end for t in parts], split)
        more = max(Fraction(0), -cell.freed) + space[1] + kept[1]
        tasks.take(memory, Change(back.begin, more, split, cell, 4))
        given = max(Fraction(0), cell.freed) + cell.freed_of_pieces + space[1]
        tasks.give(memory, Change(back.end, given, split, cell, 5))
        tasks.take(memory, Change(first, space[2] + kept[2], split, cell, 6))
        tasks.give(memory, Change(last, cell.activation - cell.freed + space[2], split, cell, 7))
    found |= {FORWARD: forward, BACKWARD: Pass([begin], needs, [end], tasks.true, received)}
    _save(tasks, cell, found)
    return found


def _perhaps_in_a_block(tasks: Tasks, own: Pass, runs: Literal, alone: Literal) -> Pass:
    """The pass by itself, or in a block, whose instants are then its own."""
    begin, end = tasks.time(), tasks.time()
    tasks.cp.add_implication(alone, runs)
    tasks.cp.add(begin == own.begin).only_enforce_if(alone)
    tasks.cp.add(end == own.end).only_enforce_if(alone)
    return Pass([begin], begin, [end], runs)


def _blocks(tasks: Tasks, passes: Mapping[Cell, Mapping[str, Pass]], alone: Mapping[tuple[Cell, str], Literal]) -> None:
    """Pairs of a forward and a full backward of one device that run together; each pass is in one block or in none."""
    cp, member = tasks.cp, {key: [literal] for key, literal in alone.items()}
    for one, other in product(passes, passes):
        time = block_time(one, other)
        if one is other or one.device != other.device or time is None:
            continue
        together = cp.new_bool_var("")
        block = tasks.task(one.device, tasks.shape.first_stream, time, together)
        for p in (passes[one]["F"], passes[other]["BW"]):
            cp.add(p.begin == block.start).only_enforce_if(together)
            cp.add(p.end == block.end).only_enforce_if(together)
        member[one, "F"].append(together)
        member[other, "BW"].append(together)
    for (cell, kind), literals in member.items():
        cp.add(sum(literals) == passes[cell][kind].runs)


def _ties(tasks: Tasks, passes: Mapping[Cell, Mapping[str, Pass]]) -> None:
    """Precedences between passes, and tensors that are sent on a stream."""
    for tie in tasks.shape.ties:
        end, lag = passes[tie.one][tie.kind].end, int(tie.lag * tasks.unit)
        if tie.stream is not None and lag:
            sent = tasks.task(tie.one.device, tie.stream, tie.lag, tasks.true)
            tasks.cp.add(sent.start >= end)
            if tie.both:
                tasks.cp.add(sent.start == passes[tie.other][tie.other_kind].received)
                continue
            end, lag = sent.end, 0
        tasks.cp.add(passes[tie.other][tie.other_kind].needs >= end + lag)
    for here in passes.values():
        tasks.cp.add(here[BACKWARD].needs >= here[FORWARD].end)


def _save(tasks: Tasks, cell: Cell, here: dict[str, Pass]) -> None:
    """Copies of the activation, or a recomputation, or neither."""
    cp, memory, chosen = tasks.cp, f"device {cell.device}", list[Literal]()
    forward, back = here[FORWARD], here[BACKWARD]
    if cell.copies is not None:
        moved = cp.new_bool_var("")
        chosen.append(moved)
        names = tasks.shape.copy_streams
        out = tasks.task(cell.device, names[0], cell.copies.out, moved)
        load = tasks.task(cell.device, names[1], cell.copies.back, moved)
        for one, other in ((forward.end, out.start), (out.end, load.start), (load.end, back.needs)):
            cp.add(one <= other).only_enforce_if(moved)
        tasks.give(memory, Change(out.end, cell.copies.amount, moved, cell, 2))
        tasks.take(memory, Change(load.start, cell.copies.amount, moved, cell, 3))
        others = [f"host {n}" for n, host in enumerate(tasks.shape.hosts) if cell.device in host.devices]
        for other in others if cell.copies.to is None else [f"device {cell.copies.to}"]:
            tasks.take(other, Change(out.start, cell.copies.amount, moved, cell, 1))
            tasks.give(other, Change(load.end, cell.copies.amount, moved, cell, 3))
    for n, mode in enumerate(cell.recomputations):
        again = cp.new_bool_var("")
        chosen.append(again)
        task = tasks.task(cell.device, tasks.shape.first_stream, mode.time, again)
        cp.add(forward.end <= task.start).only_enforce_if(again)
        cp.add(task.end <= back.needs).only_enforce_if(again)
        here[f"R{n}"] = Pass([task.start], task.start, [task.end], again)
        dropped = cell.activation - mode.keeps
        tasks.give(memory, Change(forward.end, dropped, again, cell, 1))
        tasks.take(memory, Change(task.start, dropped, again, cell, 3))
    (cp.add_at_most_one if cell.may_keep else cp.add_exactly_one)(chosen)
