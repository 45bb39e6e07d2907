"""Stream decomposition: each task of F and the task of the backward that mirrors it become one plain stage.

A stream of a device is then a device of its own. For mixture-of-experts layers, for example, attention, dispatch,
experts and combine are four stages, two on the device of computation and two on that of communication. Every schedule
of the original problem gives a schedule of the plain one, with each of those tasks at its time, so lower bounds of
plain passes are valid. Left out are tasks without a counterpart, weight tasks beyond one per task of B, and the memory
they occupy.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from pipesched.problem.features.device_resources import Pool
from pipesched.problem.passes import BW, B, F, Pass, PassKind, W
from pipesched.problem.placement import Placement
from pipesched.problem.problem import Problem
from pipesched.problem.quantities import StageId, TaskPart, Ticks
from pipesched.problem.stage import Stage, TaskSpec
from pipesched.results.certificate import Certificate
from pipesched.results.evidence import OfRelaxed, TasksAsStages
from pipesched.schedule.schedule import Schedule, schedule_of
from pipesched.schedule.timeline import Timeline

# A stage, and the numbers of its tasks of F, of the backward, and of W if there is one.
Row = tuple[StageId, TaskPart, TaskPart, TaskPart | None]
# For each task of a full backward, the equal task of the split one.
Full = tuple[tuple[PassKind, TaskPart], ...]


@dataclass(frozen=True)
class StreamDecomposition:
    """A problem with passes of several tasks, and the `plain` problem in which the tasks `rows[n]` are stage n.

    A row is (stage, task of F, task of its backward, weight task or None), each task by its place in its pass.
    `full[s]` has for each task of the full backward of stage s the (kind, task) of the split one that it is.
    """

    problem: Problem
    plain: Problem
    rows: tuple[Row, ...]
    full: tuple[Full, ...]

    def claim(self, found: Certificate) -> Certificate:
        """Convert a certificate of the plain problem to one of the original problem, of the same value."""
        assert found.evidence is not None, "bounds of the engine have evidence"
        text = (
            "A task of each forward, and that of the backward which mirrors it, is taken as a stage of its own, and a "
            f"stream as a device; of these, numbered along the chain, holds: {found.text}"
        )
        own = OfRelaxed(TasksAsStages(self.rows), found.kind, found.evidence)
        return replace(found, text=text, device=None, evidence=own)

    def order(self, timeline: Timeline) -> Schedule:
        """Return the plain problem's schedule with its passes in the order in which a timeline starts their tasks."""
        gradient, places = self.problem.network.gradient, dict[Pass, tuple[int, int]]()
        parts = int(self.plain.tick / timeline.problem.tick)
        for task, start in timeline.starts.items():
            (kind, stage, microbatch), part = task.of, task.part
            if kind in (F, B, BW):  # lookups and gathers are not part of the plain stages
                part -= timeline.problem.stages[stage].entry(kind) - self.problem.stages[stage].entry(kind)
            if part < 0:
                continue
            if kind is BW and gradient is B:
                kind, part = self.full[stage][part]
            row = self._row_of.get((kind, stage, part))
            if row is None:
                continue
            own = Pass(kind, row, microbatch)
            places[own] = start, start + self.plain.duration(own) * parts
            if kind is B and self.rows[row][3] is None:  # W takes no time and follows at once
                places[own._replace(kind=W)] = places[own][1], places[own][1]
        orders: list[list[Pass]] = [[] for _ in range(self.plain.devices)]
        for p in sorted(places, key=places.__getitem__):
            orders[self.plain.device(p)].append(p)
        return schedule_of(orders, timeline.schedule.name)

    @cached_property
    def _row_of(self) -> dict[tuple[PassKind, StageId, TaskPart], StageId]:
        kinds = (F, self.problem.network.gradient, W)
        return {
            (kind, stage, part): row
            for row, (stage, *parts) in enumerate(self.rows)
            for kind, part in zip(kinds, parts, strict=True)
            if part is not None
        }


def stream_decomposition(problem: Problem) -> StreamDecomposition | None:
    """Return the problem with its plain problem of tasks as stages; None where that is not known to be a relaxation.

    It is not for blocks, unequal micro-batches, optional passes and collectives, chains that wait for each other,
    shared streams, transfers on a stream and the objective period; nor where a full backward runs other tasks than B
    and W, where a stage has no task of F that one of its backward mirrors, or where a device has none of these on the
    main stream.
    """
    network = problem.network
    if network.blocks or network.scale or not network.has_plain_chains:
        return None
    if problem.resources.shared_streams or problem.resources.transfer_stream:
        return None
    if not problem.objective.of_one_iteration:
        return None
    full = [_full_as_split(problem, stage) for stage in range(problem.placement.stages)]
    rows = [_rows(problem, stage) for stage in range(problem.placement.stages)]
    if None in full or not all(rows):
        return None
    main, where = problem.stages[0].stream, problem.placement.stage_device
    mirrored = {
        where[s] for s, own in enumerate(rows) for _, part, *_ in own if problem.tasks_of(F, s)[part][0] == main
    }
    if len(mirrored) < problem.devices:
        return None  # without a stage on some device, bounds of plain passes do not apply
    walked = tuple(row for chain in problem.placement.chains for stage in chain for row in rows[stage])
    return StreamDecomposition(problem, _plain(problem, walked), walked, tuple(one for one in full if one is not None))


def _rows(problem: Problem, stage: StageId) -> list[Row]:
    """Return the plain stages made of a stage, in forward order: a longest set of tasks that mirror each other."""
    down, up = problem.tasks_of(F, stage), problem.tasks_of(problem.network.gradient, stage)
    mirrored = [(forward, len(up) - 1 - back) for forward, back in _in_both(down, up[::-1])]
    weight = _weights(problem, stage, [backward for _, backward in mirrored])
    return [(stage, forward, backward, weight.get(backward)) for forward, backward in mirrored]


def _in_both(down: Sequence[TaskSpec], up: Sequence[TaskSpec]) -> Iterator[tuple[int, int]]:
    """Yield the (place in `down`, place in `up`) pairs of a longest common subsequence of two task lists, ascending.

    Tasks are compared by their streams.
    """
    most = [[0] * (len(up) + 1) for _ in range(len(down) + 1)]
    for i in reversed(range(len(down))):
        for j in reversed(range(len(up))):
            same = down[i].stream == up[j].stream
            most[i][j] = most[i + 1][j + 1] + 1 if same else max(most[i + 1][j], most[i][j + 1])
    i = j = 0
    while i < len(down) and j < len(up):
        if down[i].stream == up[j].stream:
            yield i, j
            i, j = i + 1, j + 1
        elif most[i + 1][j] >= most[i][j + 1]:
            i += 1
        else:
            j += 1


def _weights(problem: Problem, stage: StageId, mirrored: Sequence[TaskPart]) -> dict[TaskPart, TaskPart]:
    """Return by index of a task of B the index of the weight task that forms a plain stage with it.

    Each weight task goes to the last task of B in `mirrored` on its stream that precedes it and has none yet; one that
    waits for all of B goes to the last such task.
    """
    if problem.network.gradient is not B:
        return {}
    backward, found = problem.tasks_of(B, stage), dict[int, int]()
    for part, task in enumerate(problem.tasks_of(W, stage)):
        last = len(backward) - 1 if task.after is None else task.after
        free = [n for n in mirrored if n <= last and n not in found and backward[n].stream == task.stream]
        if free:
            found[max(free)] = part
    return found


def _full_as_split(problem: Problem, stage: StageId) -> Full | None:
    """Return for each task of BW the equal task of B or W, as (kind, index); None if they do not correspond.

    If they do, a full backward is a split one with each weight task at once, and needs no mode of its own. Empty where
    backwards are never split.
    """
    if problem.network.gradient is not B:
        return ()
    backward, weight = problem.tasks_of(B, stage), dict(enumerate(problem.tasks_of(W, stage)))
    found, done = list[tuple[PassKind, int]](), 0
    for task in problem.tasks_of(BW, stage):
        if done < len(backward) and _like(task, backward[done]):
            found.append((B, done))
            done += 1
            continue
        ready = (n for n, one in weight.items() if _like(task, one) and done > _waits_for(one, backward))
        part = next(ready, None)
        if part is None:
            return None
        found.append((W, part))
        del weight[part]
    return None if done < len(backward) or weight else tuple(found)


def _like(one: TaskSpec, other: TaskSpec) -> bool:
    return (one.stream, one.ticks) == (other.stream, other.ticks)


def _waits_for(weight: TaskSpec, backward: Sequence[TaskSpec]) -> TaskPart:
    return len(backward) - 1 if weight.after is None else weight.after


def _last_awaited(problem: Problem, stage: StageId) -> TaskPart:
    """Return the index of the last task of B that some weight task of the stage waits for."""
    backward = problem.tasks_of(B, stage)
    return max(_waits_for(task, backward) for task in problem.tasks_of(W, stage))


def _plain(problem: Problem, rows: Sequence[Row]) -> Problem:
    """Return the plain problem whose stage n has the tasks `rows[n]`.

    Memory is taken by the first row of each stage that is on the main stream, and by no other row.
    """
    placement, main = problem.placement, problem.stages[0].stream
    devices = {(device, main): device for device in range(problem.devices)}
    where, stages, holding = list[int](), list[Stage](), set[int]()
    for stage, forward, backward, weight in rows:
        own, split = problem.stages[stage], problem.network.gradient is B
        stream, ticks = problem.tasks_of(F, stage)[forward][:2]
        back = problem.tasks_of(problem.network.gradient, stage)[backward].ticks
        later = 0 if weight is None else problem.tasks_of(W, stage)[weight].ticks
        where.append(devices.setdefault((placement.stage_device[stage], stream), len(devices)))
        plain = Stage(ticks, back, later if split else None, back + later, activation=0)
        if stream == main and stage not in holding:
            # A pass may have ended before this backward if none of its weight tasks waits for this backward.
            freed, waits = max(0, own.freed), not split or _last_awaited(problem, stage) >= backward
            plain = replace(plain, activation=own.activation if waits else freed, freed=freed, static=own.static)
            holding.add(stage)
        stages.append(plain)
    of = {stage: [n for n, row in enumerate(rows) if row[0] == stage] for stage in range(placement.stages)}
    for stage, (*_, last) in of.items():
        stages[last] = replace(stages[last], transfer=_lag(problem, stage))
    chains = tuple(tuple(n for stage in chain for n in of[stage]) for chain in placement.chains)
    return replace(
        problem,
        placement=Placement("tasks as stages", len(devices), tuple(where), chains),
        stages=tuple(stages),
        pools=(*problem.pools, *(Pool() for _ in range(len(devices) - problem.devices))),
        links=(),
        resources=replace(problem.resources, streams=()),
        walks=replace(problem.walks, queues=()),
        name=f"{problem.name}: tasks as stages",
    )


def _lag(problem: Problem, stage: StageId) -> Ticks:
    """Return the shorter of the transfer times from a stage to the next on its chain and from that back, in ticks.

    For the last stage of a chain it is 0.
    """
    after = problem.placement.next[stage]
    return 0 if after is None else min(problem.lag(stage, after), problem.lag(after, stage))
