"""Reductions, steps and gatherings of the exact model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

from benchmarks.matrix.exact.cells import BACKWARD, FORWARD, Cell, Once
from benchmarks.matrix.exact.tasks import Change, Literal, Pass, Tasks

Passes = Mapping[str, Pass]


class _Gathering(NamedTuple):
    ready: Any
    runs: Literal
    drop: Any


def add_once(tasks: Tasks, every: Sequence[tuple[Once, Sequence[Cell]]], computing: Mapping[Cell, Passes]) -> None:
    """Passes of each holder of parameters, with the cells that compute with these parameters, and those of all.

    Reductions and steps wait for gradients, which frozen cells have none of.
    """
    gathered: list[_Gathering] = []
    holders = sum(one.gather is not None for one, _ in every)
    if tasks.shape.most_gathers is not None and tasks.shape.most_gathers < holders:
        tasks.cp.add_bool_or([])  # each is gathered once at least
        return
    ends, steps = list[Any](), list[Any]()
    for one, cells in every:
        own = [computing[cell] for cell in cells]
        last, step = _reduced(tasks, one, [computing[cell] for cell in cells if not (one.trained and cell.frozen)])
        ends += [last] if one.trained and last is not None else []
        steps += [step] if one.trained and step is not None else []
        if one.gather is not None:
            found = _gathered(tasks, one, own, holders)
            tasks.cp.add(found[0].runs == 1)
            gathered += found
    if tasks.shape.most_gathers is not None:
        tasks.cp.add(sum(one.runs for one in gathered) <= tasks.shape.most_gathers)

    _norm(tasks, computing, ends, steps)


def _norm(tasks: Tasks, computing: Mapping[Cell, Passes], ends: Sequence[Any], steps: Sequence[Any]) -> None:
    """On all devices that train at once: after the backwards of all cells and these ends, and before these steps."""
    norm, trained = tasks.shape.norm, [cell for cell in computing if not cell.frozen]
    if norm is None or not trained:
        return
    on = {tasks.shape.shared.get((norm.stream, cell.device), cell.device): cell.device for cell in trained}
    found = [tasks.task(device, norm.stream, norm.time, tasks.true) for device in on.values()]
    for one in found[1:]:
        tasks.cp.add(one.start == found[0].start)
    for end in ends:
        tasks.cp.add(found[0].start >= end)
    for p in (computing[cell][name] for cell in trained for name in ("W", "BW") if name in computing[cell]):
        for end in p.ends:
            tasks.cp.add(found[0].start >= end).only_enforce_if(p.runs)
    for step in steps:
        tasks.cp.add(step >= found[0].end)


def _reduced(tasks: Tasks, once: Once, passes: Sequence[Passes]) -> tuple[Any, Any]:
    """Buckets in turn, each after its share of the tasks of every W or BW; the step after the last of them.

    When the last bucket ends and the step starts; None for what there is not.
    """
    last, step = None, None
    backwards = [here[name] for here in passes for name in ("W", "BW") if name in here]
    if once.reduce and once.each_microbatch:
        last = _each_reduced(tasks, once, passes)
    for k in range(once.buckets if once.reduce and not once.each_microbatch else 0):
        assert once.reduce
        task = tasks.task(once.device, once.reduce.stream, once.reduce.time / once.buckets, tasks.true)
        if last is not None:
            tasks.cp.add(task.start >= last)
        for p in backwards:
            for end in _share(p.ends, k, once.buckets):
                tasks.cp.add(task.start >= end).only_enforce_if(p.runs)
        last = task.end
    if once.step:
        task = tasks.task(once.device, once.step.stream, once.step.time, tasks.true)
        if last is not None:
            tasks.cp.add(task.start >= last)
        for p in backwards:
            for end in p.ends:
                tasks.cp.add(task.start >= end).only_enforce_if(p.runs)
        step = task.start
    return last, step


def _each_reduced(tasks: Tasks, one: Once, own: Sequence[Passes]) -> Any:
    """A reduction after each backward; all of them have ended at the instant that is given."""
    assert one.reduce
    last = tasks.time()
    for here in own:
        task = tasks.task(one.device, one.reduce.stream, one.reduce.time, tasks.true)
        tasks.cp.add(last >= task.end)
        for p in (here[name] for name in ("W", "BW") if name in here):
            for end in p.ends:
                tasks.cp.add(task.start >= end).only_enforce_if(p.runs)
    return last


def _share(ends: Sequence[Any], k: int, buckets: int) -> list[Any]:
    """The tasks of which a part lies in the k-th of so many equal parts of a pass."""
    count = len(ends)
    return [end for n, end in enumerate(ends) if n * buckets < (k + 1) * count and (n + 1) * buckets > k * count]


def _gathered(tasks: Tasks, once: Once, passes: Sequence[Passes], holders: int) -> list[_Gathering]:
    """Each pass belongs to a gathering: it begins after that, and ends before the parameters are dropped."""
    assert once.gather
    shape, cp, found = tasks.shape, tasks.cp, list[_Gathering]()
    most = once.most if shape.most_gathers is None else min(once.most, shape.most_gathers - holders + 1)
    for k in range(most):
        runs = cp.new_bool_var("")
        task = tasks.task(once.device, once.gather.stream, once.gather.time, runs)
        drop = tasks.task(once.device, shape.first_stream, Fraction(0), runs).start
        cp.add(drop >= task.end).only_enforce_if(runs)
        if found:
            cp.add_implication(runs, found[-1].runs)
            cp.add(task.start >= found[-1].drop).only_enforce_if(runs)
        found.append(_Gathering(task.end, runs, drop))
        for memory, amount in ((f"device {once.device}", once.gathered), (f"window {once.device}", Fraction(1))):
            tasks.take(memory, Change(task.start, amount, runs, (once.holder, k), 0))
            tasks.give(memory, Change(drop, amount, runs, (once.holder, k), 1))
    for p in (p for here in passes for name, p in here.items() if name not in (FORWARD, BACKWARD)):
        chosen = []
        for gathering in found:
            chosen.append(cp.new_bool_var(""))
            cp.add_implication(chosen[-1], gathering.runs)
            for begin in p.begins:
                cp.add(begin >= gathering.ready).only_enforce_if(chosen[-1], p.runs)
            for end in p.ends:
                cp.add(end <= gathering.drop).only_enforce_if(chosen[-1], p.runs)
        cp.add_exactly_one(chosen)
    return found
