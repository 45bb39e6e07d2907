"""A problem by its definition alone, and exact optima by trying every order of every stream, every mode and wait.

It uses neither simulator nor solver, and only names of the task network. `exhaustive/` tries the orders of whole
passes, which are fewer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cached_property, partial
from itertools import chain, combinations, islice, pairwise, permutations, product
from math import prod
from random import Random
from typing import Any, NamedTuple

from pipesched.problem import placement
from pipesched.problem.features.module import Module
from pipesched.problem.features.parameters import StageParameters
from pipesched.problem.features.stage_arc import StageArc
from pipesched.problem.network.task_network import Resource
from pipesched.problem.passes import (
    BW,
    NORM,
    OFFLOAD,
    RECOMPUTATIONS,
    REDUCE,
    RELOAD,
    RESHARD,
    STEP,
    UNSHARD,
    B,
    F,
    Pass,
    PassKind,
    Task,
    W,
)
from pipesched.problem.placement import Placement
from pipesched.problem.problem import Objective, Problem
from pipesched.problem.stage import COMPUTE, Gather, Once, Stage, TaskSpec
from pipesched.schedule.schedule import Schedule, Wait
from pipesched.schedule.stream_orders import stream_orders
from tests.support.columns import Costs, Memory, build, with_tasks
from tests.support.optima import fraction_as_json, fraction_of_json, stored

Stream = tuple[int, str]
Arcs = frozenset[tuple[Task, Task]]


class TooManyOrdersError(ValueError):
    """There are more orders than may be tried."""


class _Pass(NamedTuple):
    """The tasks of a pass: those that begin it, those that end it, and the one that sends its tensor (None: none
    does)."""

    begins: tuple[Task, ...]
    ends: tuple[Task, ...]
    sends: Task | None


class _Numbered(NamedTuple):
    """The tasks of a `Game` as numbers, since orders are tried by the ten thousand, with lists by number.

    `needs` has the (task, lag) pairs that a task waits for by the problem's own precedences.
    """

    tasks: list[Task]
    number: dict[Task, int]
    ticks: list[int]
    needs: list[list[tuple[int, int]]]
    devices: list[list[int]]


class _Holding(NamedTuple):
    """Memory that is taken when one of `begins` starts, and given back when all of `ends` have ended.

    Memory given back only for a while is taken again by another holding.
    """

    memory: str
    begins: tuple[Task, ...]
    ends: tuple[Task, ...]
    takes: int
    gives: int


MOST_WAITS, MOST_ORDERS = 6, 50_000

# For a stage and micro-batch the way to hold less of its activation: O, or a recomputation.
Modes = Mapping[tuple[int, int], PassKind]


class Game:
    """A problem with fused backwards, activation modes and blocks chosen: durations, precedences and memory of its
    tasks.

    `ticks` are durations, `lags[a, b]` the least ticks from the end of a to the start of b, `holdings` the memory
    taken, `rooms` its limits. A block, of a forward and the full backward that runs with it, is the forward's task.
    """

    def __init__(
        self,
        problem: Problem,
        fused: frozenset[tuple[int, int]],
        modes: Modes | None = None,
        gathers: Mapping[int, int] | None = None,
        blocks: Mapping[Pass, Pass] | None = None,
    ) -> None:
        self.problem, self._fused = problem, fused
        self.blocks = blocks or {}
        self._block = {p: Task(forward) for forward, back in self.blocks.items() for p in (forward, back)}
        self.ticks: dict[Task, int] = {}
        self.stream: dict[Task, Stream] = {}
        self.lags: dict[tuple[Task, Task], int] = {}
        self.passes: dict[Pass, _Pass] = {}
        self.holdings: list[_Holding] = []
        # What a task occupies in addition.
        self.also: dict[Task, tuple[Stream, ...]] = {}
        self.rooms = {f"device {device}": room for device, room in enumerate(problem.room)}
        if problem.parameters.window is not None:
            self.rooms |= {f"window {device}": problem.parameters.window for device in range(problem.devices)}
        self.rooms |= {f"host {n}": host.capacity for n, host in enumerate(problem.resources.hosts)}
        for walked in problem.placement.chains:
            for j in problem.microbatches_of[walked[0]]:
                for stage in walked:
                    for kind in (F, BW) if (stage, j) in fused else (F, B, W):
                        self._add(Pass(kind, stage, j))
                self._tie(walked, j)
        for module in problem.chain_arcs.modules:
            (self._share if module.shared else self._feed)(module)
        for arc in () if problem.chain_arcs.modules else problem.chain_arcs.arcs:
            self._tie_chains(arc)
        if problem.walks.queues:
            self._in_line()
        for (stage, j), mode in (modes or {}).items():
            self._save(stage, j, mode)
        for stage in range(problem.placement.stages):
            self._run_once(stage)
        for stage, own in enumerate(problem.stages):
            for one in (each for each in own.once if each.kind is NORM):
                self._take_norm(stage, one.task)
        # Of each stage that is gathered again: its releases but the last, and the gathering that follows each.
        self.gaps: dict[int, list[tuple[Task, Task]]] = {}
        self.gathers = gathers or {}
        for stage, count in self.gathers.items():
            self._gather(stage, count)
        if problem.walks.scale:
            self._unequal(problem.walks.scale)

    def _backward(self, stage: int, j: int) -> Pass:
        return Pass(BW if (stage, j) in self._fused else B, stage, j)

    def _lag(self, sender: int, here: int, there: int) -> int:
        """Return the ticks of the transfer of stage `sender`'s output from one device to another; 0 on one device."""
        links = self.problem.links
        return self.problem.stages[sender].transfer + (links[here][there] if links else 0) if here != there else 0

    def _back(self, receiver: int, here: int, there: int) -> int:
        """Return the ticks of the transfer of a gradient to stage `receiver`; 0 if it runs forwards alone and gets
        none."""
        return 0 if self.problem.stages[receiver].forward_only else self._lag(receiver, here, there)

    def _need(self, one: Pass, other: Pass, lag: int) -> None:
        """Add a precedence: the second pass begins at least `lag` ticks after the first one has ended."""
        pair = self.passes[one].ends[-1], self._entry(other)
        self.lags[pair] = max(lag, self.lags.get(pair, 0))

    def _tie_chains(self, arc: StageArc) -> None:
        """Add the precedences of an arc between stages of two chains, micro-batch by micro-batch."""
        kind = self._backward if arc.backward else partial(Pass, F)
        for i, j in zip(self.problem.microbatches_of[arc.before], self.problem.microbatches_of[arc.after], strict=True):
            self._need(kind(arc.before, i), kind(arc.after, j), 0)

    def _in_line(self) -> None:
        """Add the precedences that make forwards and backwards of each stage run in the order of micro-batches."""
        for stage in range(self.problem.placement.stages):
            for first, then in pairwise(self.problem.microbatches_of[stage]):
                lines = [(Pass(F, stage, j), self._backward(stage, j)) for j in (first, then)]
                for before, after in zip(*lines, strict=True):
                    self.lags.setdefault((self.passes[before].begins[0], self.passes[after].begins[0]), 0)

    def _feed(self, module: Module) -> None:
        """Add the precedences between a module and the stages that it feeds.

        Its n-th pass, on copy n mod the number of copies, serves `serves` consecutive micro-batches.
        """
        where, trunk = self.problem.placement.stage_device, self.problem.walking[0]
        for n in range(trunk.stop // module.serves):
            last = module.chains[n % module.copies][-1]
            own = self.problem.microbatches_of[last][n // module.copies]
            for fed, j in product(module.feeds, trunk[n * module.serves : (n + 1) * module.serves]):
                self._need(Pass(F, last, own), Pass(F, fed, j), self._lag(last, where[last], where[fed]))
                lag = self._back(last, where[fed], where[last])
                self._need(self._backward(fed, j), self._backward(last, own), lag)

    def _share(self, module: Module) -> None:
        """Add the precedences of a module shared by all devices: each part precedes all that follows the collective."""
        where, (fed,) = self.problem.placement.stage_device, module.feeds
        for place in self.problem.walking[0]:
            parts = [(s, self.problem.microbatches_of[s][place // module.serves]) for (s,) in module.chains]
            collective = self.problem.stages[parts[0][0]].transfer
            for stage, j in parts:
                forward, back, sent = (
                    Pass(F, stage, j),
                    self._backward(stage, j),
                    self._lag(fed, where[fed], where[stage]),
                )
                if module.barriers == 0:
                    self._need(forward, Pass(F, fed, place), collective)
                    lag = self._back(stage, where[fed], where[stage])
                    self._need(self._backward(fed, place), back, lag)
                    continue
                self._need(Pass(F, fed, place), forward, sent)
                for other, i in parts:
                    self._need(Pass(F, other, i), back, collective)
                joined = 0 if self.problem.stages[fed].forward_only else collective
                self._need(forward if module.barriers == 1 else back, self._backward(fed, place), joined)

    def _gather(self, stage: int, count: int) -> None:
        """Add `count` gatherings of a stage's parameters, each followed by its release, with their memory."""
        own, device = self.problem.stages[stage], self.problem.placement.stage_device[stage]
        assert own.gather is not None
        pairs = [(Task(Pass(UNSHARD, stage, k)), Task(Pass(RESHARD, stage, k))) for k in range(count)]
        for begin, end in pairs:
            self.ticks |= {begin: own.gather.task.ticks, end: 0}
            self.stream |= {begin: (device, own.gather.task.stream), end: (device, own.stream)}
            self.holdings.append(_Holding(f"device {device}", (begin,), (begin,), own.gather.memory, 0))
            self.holdings.append(_Holding(f"device {device}", (end,), (end,), 0, own.gather.memory))
            if self.problem.parameters.window is not None:
                self.holdings.append(_Holding(f"window {device}", (begin,), (begin,), 1, 0))
                self.holdings.append(_Holding(f"window {device}", (end,), (end,), 0, 1))
            self.lags[begin, end] = 0
        for (_, end), (begin, _) in pairwise(pairs):
            self.lags[end, begin] = 0
        for p, compute in self.passes.items():
            if self.computes_with(p, stage):
                self.lags |= dict.fromkeys(((pairs[0][0], task) for task in compute.begins), 0)
                self.lags |= dict.fromkeys(((task, pairs[-1][1]) for task in compute.ends), 0)
        self.gaps[stage] = [(end, begin) for (_, end), (begin, _) in pairwise(pairs)]

    def _on(self, device: int, stream: str) -> Stream:
        """Return the stream of this name that a device uses, by its first device where several share it."""
        shared = (
            one.devices[0]
            for one in self.problem.resources.shared_streams
            if one.stream == stream and device in one.devices
        )
        return next(shared, device), stream

    def holder(self, stage: int) -> int:
        """Return the stage whose parameters a stage computes with."""
        return self.problem.parameters.holder(stage)

    def computes_with(self, p: Pass, stage: int) -> bool:
        """Return True if a pass computes with the parameters of a stage."""
        kinds = (F,) if self.problem.stages[p.stage].forward_only else (F, B, W, BW)
        return self.holder(p.stage) == stage and p.kind in kinds

    def gathered(self, orders: Mapping[Any, Sequence[Task]]) -> Arcs:
        """Return arcs from each repeated gather to the passes that the orders have after the release before it.

        Only for passes that are one task each.
        """
        found = set[tuple[Task, Task]]()
        for stage, gaps in self.gaps.items():
            for end, begin in gaps:
                order = orders[self.stream[end]]
                later = order[order.index(end) + 1 :]
                found |= {(begin, task) for task in later if self.computes_with(task.of, stage)}
        return frozenset(found)

    def _run_once(self, stage: int) -> None:
        """Add the reductions of a stage's gradients, after the backwards that compute them, and its step after
        those."""
        device, own_stage = self.problem.placement.stage_device[stage], self.problem.stages[stage]
        own = [p for p in self.passes if p.kind in (W, BW) and self.computes_with(p, stage)]
        whole, last = [task for p in own for task in self.passes[p].ends], list[Task]()
        buckets = next((one.parts for one in own_stage.once if one.kind is REDUCE), 0)
        for one in own_stage.once:
            if one.each_microbatch:
                last += [
                    self._reduction(stage, one.task, k, p)
                    for k, p in enumerate(sorted(own, key=lambda p: p.microbatch))
                ]
        once = [one for one in own_stage.once if not one.each_microbatch and one.kind is not NORM]
        for kind, spec, k in ((one.kind, one.task, k) for one in once for k in range(one.parts)):
            task = Task(Pass(kind, stage, k))
            self.ticks[task], self.stream[task] = spec.ticks, self._on(device, spec.stream)
            before = last or whole
            if kind is REDUCE:
                # The k-th of so many equal shares of a pass, as long as no task of it is cut.
                before = [*last]
                for p in own:
                    parts = len(self.problem.stages[p.stage].tasks_of(p.kind))
                    shares = [
                        n for n in range(parts) if n * buckets < (k + 1) * parts and (n + 1) * buckets > k * parts
                    ]
                    before += [Task(p, n) for n in (shares if p.kind is W else shares[-1:])]
            self.lags |= dict.fromkeys(((one, task) for one in before), 0)
            last = [task]

    def _take_norm(self, stage: int, spec: TaskSpec) -> None:
        """Add the norm of all gradients, after all tasks that compute or reduce some, and before the steps that use
        them."""
        task, problem = Task(Pass(NORM, stage, 0)), self.problem
        self.ticks[task], self.stream[task] = (
            spec.ticks,
            self._on(problem.placement.stage_device[stage], spec.stream),
        )
        self.also[task] = tuple(self._on(where.device, where.stream) for where in spec.also)
        training = {self.holder(s) for s, own in enumerate(problem.stages) if not own.forward_only}
        computing = [p for p in self.passes if p.kind in (W, BW) and not problem.stages[p.stage].forward_only]
        reduced = [one for one in self.ticks if one.of.kind is REDUCE and one.of.stage in training]
        steps = [one for one in self.ticks if one.of.kind is STEP and one.of.stage in training]
        before = [end for p in computing for end in self.passes[p].ends] + reduced
        self.lags |= dict.fromkeys(((one, task) for one in before), 0)
        self.lags |= dict.fromkeys(((task, step) for step in steps), 0)

    def _reduction(self, stage: int, spec: TaskSpec, number: int, p: Pass) -> Task:
        """Add and return the reduction of one micro-batch's gradients, after the backward `p` that computes them."""
        task = Task(Pass(REDUCE, stage, number))
        self.ticks[task] = spec.ticks
        self.stream[task] = self._on(self.problem.placement.stage_device[stage], spec.stream)
        self.lags |= dict.fromkeys(((end, task) for end in self.passes[p].ends), 0)
        return task

    def _unequal(self, scale: Sequence[Fraction]) -> None:
        """Multiply durations, lags and memory of every micro-batch by its factor."""
        for task in self.ticks:
            self.ticks[task] = int(self.ticks[task] * scale[task.of.microbatch])
        for (one, other), lag in self.lags.items():
            self.lags[one, other] = int(lag * scale[one.of.microbatch])
        for n, own in enumerate(self.holdings):
            factor = scale[own.begins[0].of.microbatch]
            self.holdings[n] = own._replace(takes=int(own.takes * factor), gives=int(own.gives * factor))

    def _save(self, stage: int, j: int, mode: PassKind) -> None:
        """Add the copies or the recomputation of an activation, and their changes of memory."""
        own, device = self.problem.stages[stage], self.problem.placement.stage_device[stage]
        forward = self.passes[Pass(F, stage, j)]
        if mode is OFFLOAD:
            copy = own.offload
            assert copy is not None
            out, load = Task(Pass(OFFLOAD, stage, j)), Task(Pass(RELOAD, stage, j))
            for task, ticks, stream in ((out, copy.out_ticks, copy.out_stream), (load, copy.in_ticks, copy.in_stream)):
                self.ticks[task], self.stream[task] = ticks, self._on(device, stream)
            self.lags |= {(forward.ends[-1], out): 0, (out, load): 0, (load, self._entry(self._backward(stage, j))): 0}
            self.holdings.append(_Holding(f"device {device}", (out,), (out,), 0, copy.amount))
            self.holdings.append(_Holding(f"device {device}", (load,), (load,), copy.amount, 0))
            if copy.to is not None:
                self.holdings.append(_Holding(f"device {copy.to}", (out,), (out,), copy.amount, 0))
                self.holdings.append(_Holding(f"device {copy.to}", (load,), (load,), 0, copy.amount))
            for n, host in enumerate(self.problem.resources.hosts):
                if device in host.devices and copy.to is None:
                    self.holdings.append(_Holding(f"host {n}", (out,), (out,), copy.amount, 0))
                    self.holdings.append(_Holding(f"host {n}", (load,), (load,), 0, copy.amount))
            return
        _, ticks, keeps = own.recompute[RECOMPUTATIONS.index(mode)]
        again = Task(Pass(mode, stage, j))
        self.ticks[again], self.stream[again] = ticks, (device, own.stream)
        self.lags |= {(forward.ends[-1], again): 0, (again, self._entry(self._backward(stage, j))): 0}
        dropped = own.activation - keeps
        self.holdings.append(_Holding(f"device {device}", forward.begins, forward.ends, 0, dropped))
        self.holdings.append(_Holding(f"device {device}", (again,), (again,), dropped, 0))

    def _together(self, forward: Pass) -> int:
        one, other = (self.problem.stages[p.stage] for p in (forward, self.blocks[forward]))
        return block_ticks(one, other) or 0

    def _add(self, p: Pass) -> None:
        stage, device = self.problem.stages[p.stage], self.problem.placement.stage_device[p.stage]
        whole = {F: stage.forward, B: stage.backward, W: stage.weight, BW: stage.fused}[p.kind]
        specs = dict(stage.tasks).get(p.kind) or (TaskSpec(stage.stream, whole or 0),)
        tasks = tuple(Task(p, part) for part in range(len(specs)))
        if p in self._block:
            tasks = (self._block[p],)
            specs = (TaskSpec(self.problem.streams[0], self._together(tasks[0].of)),)
        for task, spec in zip(tasks, specs, strict=True):
            self.ticks[task], self.stream[task] = spec.ticks, (device, spec.stream)
            if spec.also:
                self.also[task] = tuple((where.device, where.stream) for where in spec.also)
        takes = {F: stage.activation + stage.kv_cache.taken, B: max(0, -stage.freed)}.get(p.kind, 0)
        gives = {BW: stage.activation, B: max(0, stage.freed), W: stage.activation - stage.freed}.get(p.kind, 0)
        gives += stage.kv_cache.released if p.kind in (B, BW) else 0
        # A full backward is first B, then W: it keeps what both do, and holds the workspace of one at a time.
        at = {F: (0,), B: (1,), W: (2,), BW: (1, 2)}[p.kind]
        running = max(stage.workspace[n] for n in at)
        takes, gives = takes + running + sum(stage.until_end[n] for n in at), gives + running
        if p.kind is W:
            self.passes[p] = _Pass(tasks, tasks, None)
            self.holdings.append(_Holding(f"device {device}", tasks, tasks, takes, gives))
            backward = self.passes[Pass(B, *p[1:])]
            for task, spec in zip(tasks, specs, strict=True):
                before = backward.ends[0] if spec.after is None else Task(backward.ends[0].of, spec.after)
                self.lags[before, task] = 0
            return
        for one, other in pairwise(tasks):
            self.lags[one, other] = 0
        self.passes[p] = _Pass(tasks[:1], tasks[-1:], self._sending(p, len(tasks)))
        self.holdings.append(_Holding(f"device {device}", tasks[:1], tasks[-1:], takes, gives))

    def _sending(self, p: Pass, part: int) -> Task | None:
        """Return the task that sends a pass's tensor on, added as part `part`; None where that occupies no stream."""
        problem, walked = self.problem, next(c for c in self.problem.placement.chains if p.stage in c)
        place = walked.index(p.stage) + (1 if p.kind is F else -1)
        if problem.resources.transfer_stream is None or not 0 <= place < len(walked):
            return None
        here, there = (problem.placement.stage_device[s] for s in (p.stage, walked[place]))
        ticks = self._lag(p.stage, here, there) if p.kind is F else self._back(walked[place], here, there)
        if not ticks:
            return None
        task = Task(p, part)
        self.ticks[task], self.stream[task] = ticks, (here, problem.resources.transfer_stream)
        self.lags[Task(p, part - 1), task] = 0
        return task

    def streams_of(self, task: Task) -> tuple[Stream, ...]:
        """Return all streams that a task occupies, each once."""
        return tuple(dict.fromkeys((self.stream[task], *self.also.get(task, ()))))

    def devices_of(self, task: Task) -> set[int]:
        """Return the devices of the streams that a task occupies."""
        return {device for device, _ in self.streams_of(task)}

    def _entry(self, p: Pass) -> Task:
        """Return the first task of a pass that needs the tensor of another pass; lookups before it need nothing."""
        if p in self._block:
            return self.passes[p].begins[0]
        tasks = self.problem.stages[p.stage].tasks_of(p.kind)
        return Task(p, [task.needs_input and not task.receives for task in tasks].index(True))

    def _receipt(self, p: Pass) -> Task | None:
        """Return the task that receives a pass's tensor; None where that occupies no stream."""
        tasks = self.problem.stages[p.stage].tasks_of(p.kind)
        return next((Task(p, part) for part, task in enumerate(tasks) if task.receives), None)

    def _tie(self, walked: Sequence[int], j: int) -> None:
        where = self.problem.placement.stage_device

        def tie(one: Pass, other: Pass, lag: int) -> None:
            sends = None if one.stage == other.stage else self.passes[one].sends
            receipt = None if one.stage == other.stage else self._receipt(other)
            pair = sends or self.passes[one].ends[-1], receipt or self._entry(other)
            self.lags[pair] = max(0 if sends else lag, self.lags.get(pair, 0))

        for place, stage in enumerate(walked):
            tie(Pass(F, stage, j), self._backward(stage, j), 0)
            if place:
                before = walked[place - 1]
                tie(Pass(F, before, j), Pass(F, stage, j), self._lag(before, where[before], where[stage]))
                tie(
                    self._backward(stage, j), self._backward(before, j), self._back(before, where[stage], where[before])
                )

    def orders(self, most: int = MOST_ORDERS) -> Iterator[dict[Stream, tuple[Task, ...]]]:
        """Yield every choice of an order for each stream that the precedences allow; `TooManyOrdersError` for more than
        `most`."""
        known = paths(self.ticks, frozenset(self.lags))
        tasks_of_stream: dict[Stream, list[Task]] = {}
        for task in self.stream:
            for stream in self.streams_of(task):
                tasks_of_stream.setdefault(stream, []).append(task)

        def of(tasks: frozenset[Task]) -> Iterator[tuple[Task, ...]]:
            if not tasks:
                yield ()
            for task in sorted(tasks):
                if not any((other, task) in known for other in tasks):
                    yield from ((task, *others) for others in of(tasks - {task}))

        orders_of_streams = [list(islice(of(frozenset(tasks)), most + 1)) for tasks in tasks_of_stream.values()]
        if prod(map(len, orders_of_streams)) > most:
            raise TooManyOrdersError("too many orders to try")
        for chosen in product(*orders_of_streams):
            yield dict(zip(tasks_of_stream, chosen, strict=True))

    @cached_property
    def _numbered(self) -> _Numbered:
        tasks = list(self.ticks)
        number = {task: n for n, task in enumerate(tasks)}
        needs: list[list[tuple[int, int]]] = [[] for _ in tasks]
        for (one, other), lag in self.lags.items():
            needs[number[other]].append((number[one], lag))
        devices = [sorted(self.devices_of(task)) for task in tasks]
        return _Numbered(tasks, number, [self.ticks[task] for task in tasks], needs, devices)

    def _before(self, arcs: Arcs) -> dict[int, list[tuple[int, int]]] | None:
        """Return each task's predecessors with lags, tasks in topological order; None where they wait in a cycle.

        Tasks are numbers in `_numbered`. `arcs` are precedences in addition to the problem's own.
        """
        number, before = self._numbered.number, [*map(list, self._numbered.needs)]
        for one, other in arcs:
            if (one, other) not in self.lags:
                before[number[other]].append((number[one], 0))
        sequence = _sorted(before)
        return None if sequence is None else {task: before[task] for task in sequence}

    def starts(self, arcs: Arcs, idle: Sequence[int] | None = None) -> dict[Task, int] | None:
        """Return the earliest start of each task in ticks, with the precedences `arcs` added; None for a cycle of
        waits.

        No task of a device starts before `idle[device]`.
        """
        before, starts, known = self._before(arcs), dict[int, int](), self._numbered
        for task, needs in (before or {}).items():
            since = max(idle[device] for device in known.devices[task]) if idle else 0
            starts[task] = max([since, *(starts[one] + known.ticks[one] + lag for one, lag in needs)])
        if before is None:
            return None
        of_tasks = {known.tasks[task]: start for task, start in starts.items()}
        return of_tasks | {Task(b): of_tasks[Task(f)] for f, b in self.blocks.items()}

    def value(self, arcs: Arcs, objective: Objective) -> Fraction | None:
        """Return the least value of the objective in ticks, with the precedences `arcs` added; None for a cycle of
        waits."""
        before = self._before(arcs)
        if before is None:
            return None
        if objective == Objective.SPAN:
            return self._span(before)
        ends = dict[int, int]()
        for task, needs in before.items():
            ends[task] = max([0, *(ends[one] + lag for one, lag in needs)]) + self._numbered.ticks[task]
        return Fraction(max(ends.values(), default=0))

    def _span(self, before: Mapping[int, Sequence[tuple[int, int]]]) -> Fraction:
        """Return the least span of the precedence network in ticks.

        It is the greatest mean, over cycles of devices, of the longest paths from one's first start to the next one's
        last end.
        """
        known = self._numbered
        devices = sorted(set[int]().union(*known.devices))
        far: dict[tuple[int, int], int] = {}
        for begin in devices:
            ends: dict[int, int] = {}
            for task, needs in before.items():
                paths_to_end = [ends[one] + lag for one, lag in needs if one in ends]
                if begin in known.devices[task]:
                    paths_to_end.append(0)
                if paths_to_end:
                    ends[task] = max(paths_to_end) + known.ticks[task]
            for task, end in ends.items():
                for device in known.devices[task]:
                    far[begin, device] = max(far.get((begin, device), -(10**9)), end)
        cycles = chain.from_iterable(permutations(devices, n) for n in range(1, len(devices) + 1))
        means = (
            Fraction(sum(far.get(pair, -(10**9)) for pair in zip(c, (*c[1:], c[0]), strict=True)), len(c))
            for c in cycles
        )
        return max(means, default=Fraction(0))

    def fits(self, arcs: Arcs) -> bool:
        """Return True if memory suffices on any timing of these precedences.

        Checked is each set of begun holdings, together with all that has surely ended when they have begun.
        """
        surely = ancestors(self.ticks, frozenset(self.lags) | arcs)
        for memory, room in self.rooms.items():
            here = [own for own in self.holdings if own.memory == memory]
            takers = [own for own in here if own.takes and room is not None]
            for count in range(1, len(takers) + 1):
                for state in combinations(takers, count):
                    for begun in product(*(own.begins for own in state)):
                        ended = set().union(*(surely[task] for task in begun))
                        given = sum(own.gives for own in here if ended.issuperset(own.ends))
                        if sum(own.takes for own in state) - given > (room or 0):
                            return False
        return True

    def least(
        self, turns: Arcs, events: Sequence[tuple[Task, Task]], objective: Objective, bar: Fraction | None
    ) -> Fraction | None:
        """Return the least value less than `bar` of these stream orders with some of the `events` added, such that
        memory fits.

        None if there is none. An additional event makes no value less, and an order that fits without it needs it not.
        """
        value = self.value(turns, objective)
        if value is None or (bar is not None and value >= bar):
            return None
        if self.fits(turns):
            return value
        best = None
        for n, event in enumerate(events):
            found = self.least(turns | {event}, events[n + 1 :], objective, bar)
            if found is not None:
                best = bar = found
        return best

    def waits(self) -> list[tuple[Task, Task]]:
        """Return the (before, after) pairs of tasks that may be events for memory: one frees some that the other takes.

        Pairs on one stream, or ordered by precedences, are left out.
        """
        found = []
        for own in self.holdings:
            if own.takes and self.rooms[own.memory] is not None:
                for other in self.holdings:
                    if other is not own and other.memory == own.memory and other.gives:
                        found += [(task, own.begins[0]) for task in other.ends]
        known = paths(self.ticks, frozenset(self.lags))
        return [
            (one, other)
            for one, other in dict.fromkeys(found)
            if {*self.streams_of(one)}.isdisjoint(self.streams_of(other)) and not {(one, other), (other, one)} & known
        ]


def block_ticks(forward: Stage, backward: Stage) -> int | None:
    """Return the ticks of a block of passes of these stages; None where there is no such block."""
    if forward.blocks.ticks is not None:
        return forward.blocks.ticks
    if forward.blocks.saves is None or backward.blocks.saves is None:
        return None
    return forward.forward + backward.fused - min(forward.blocks.saves, backward.blocks.saves)


def paths(tasks: Mapping[Task, object], arcs: Arcs) -> frozenset[tuple[Task, Task]]:
    """Return the pairs (a, b) of tasks with a path from a to b."""
    return frozenset((one, task) for task, before in ancestors(tasks, arcs).items() for one in before)


def ancestors(tasks: Mapping[Task, object], arcs: Arcs) -> dict[Task, set[Task]]:
    """Return for each task the tasks from which there is a path to it."""
    before: dict[Task, list[Task]] = {task: [] for task in tasks}
    for one, other in arcs:
        before[other].append(one)
    found: dict[Task, set[Task]] = {}
    for task in tasks:
        found[task], stack = set(), before[task]
        while stack:
            new = {*stack} - found[task]
            found[task] |= new
            stack = [q for p in new for q in before[p]]
    return found


def _sorted(before: Sequence[Sequence[tuple[int, int]]]) -> list[int] | None:
    """Return the numbers of tasks in topological order; None where they wait in a cycle."""
    missing = [len(needs) for needs in before]
    after: list[list[int]] = [[] for _ in before]
    for task, needs in enumerate(before):
        for one, _ in needs:
            after[one].append(task)
    sequence = [task for task, count in enumerate(missing) if not count]
    for task in sequence:
        for other in after[task]:
            missing[other] -= 1
            if not missing[other]:
                sequence.append(other)
    return sequence if len(sequence) == len(before) else None


@stored(fraction_as_json, fraction_of_json, TooManyOrdersError)
def optimum(
    problem: Problem, objective: Objective, most_waits: int = MOST_WAITS, most_orders: int = MOST_ORDERS
) -> Fraction | None:
    """Return the least value in ticks over modes, blocks, orders and waits; None if nothing fits.

    `TooManyOrdersError` where there are too many to try.
    """
    best: Fraction | None = None
    pairs = [(s, j) for s in range(problem.placement.stages) for j in problem.microbatches_of[s]]
    fusings = (
        chain.from_iterable(combinations(pairs, n) for n in range(len(pairs) + 1)) if problem.splittable else [pairs]
    )
    chosen = product(list(fusings), list(savings(problem, pairs)), list(gather_counts(problem)))
    for fused, saving, gathers, blocks in (
        (*one, blocks) for one in chosen for blocks in blockings(problem, pairs, one[0])
    ):
        game = Game(problem, frozenset(fused), saving, gathers, blocks)
        events = game.waits()
        if len(events) > most_waits:
            raise TooManyOrdersError("too many waits to try")
        for orders in game.orders(most_orders):
            turns = frozenset(pair for order in orders.values() for pair in pairwise(order)) | game.gathered(orders)
            found = game.least(turns, events, objective, best)
            best = best if found is None else found
    return best


def blockings(
    problem: Problem, forwards: Sequence[tuple[int, int]], fused: Iterable[tuple[int, int]]
) -> Iterator[dict[Pass, Pass]]:
    """Yield all choices of pairs of these forwards and full backwards that run as blocks, the choice of none too."""
    if not forwards or not problem.overlaps:
        yield {}
        return
    (stage, j), *others = forwards
    yield from blockings(problem, others, fused)
    where = problem.placement.stage_device
    for mate in fused:
        if where[mate[0]] == where[stage] and block_ticks(*(problem.stages[s] for s in (stage, mate[0]))) is not None:
            for more in blockings(problem, others, [one for one in fused if one != mate]):
                yield {Pass(F, stage, j): Pass(BW, *mate)} | more


def gather_counts(problem: Problem) -> Iterator[dict[int, int]]:
    """Yield all choices of the number of gathers of each stage that has them."""
    most = {s: own.gather.most for s, own in enumerate(problem.stages) if own.gather is not None}
    for counts in product(*(range(1, each + 1) for each in most.values())):
        if problem.parameters.most is None or sum(counts) <= problem.parameters.most:
            yield dict(zip(most, counts, strict=True))


def savings(problem: Problem, pairs: Sequence[tuple[int, int]]) -> Iterator[Modes]:
    """Yield all choices of the mode of each activation, by (stage, micro-batch); kept ones have no entry."""
    able = [
        [
            *([None] if own.may_keep else []),
            *([OFFLOAD] if own.offload else []),
            *RECOMPUTATIONS[: len(own.recompute)],
        ]
        for own in (problem.stages[stage] for stage, _ in pairs)
    ]
    for chosen in product(*able):
        yield {pair: mode for pair, mode in zip(pairs, chosen, strict=True) if mode is not None}


def game_of(problem: Problem, schedule: Schedule) -> Game:
    """Return the problem with the choices (fused backwards, modes, blocks, gathers) of a schedule."""
    every = [*schedule.passes()]
    modes = {p[1:]: p.kind for p in every if p.kind in (OFFLOAD, *RECOMPUTATIONS)}
    fused = frozenset((p.stage, p.microbatch) for p in every if p.kind is BW)
    pairs = [slot for order in schedule.orders for slot in order if len(slot) == 2 and slot[1].kind is BW]
    blocks = {one: other for one, other in pairs if problem.overlaps}
    return Game(problem, fused, modes, Counter(p.stage for p in every if p.kind is UNSHARD), blocks)


def arcs_of(game: Game, schedule: Schedule) -> Arcs:
    """Return the precedences of tasks that a schedule adds: by the orders of streams, and by waits."""
    orders = schedule.task_orders or stream_orders(game.problem, schedule)
    turns = {pair for order in orders.values() for pair in pairwise(order)}
    return game.gathered(orders) | turns | {(wait.before, wait.after) for wait in schedule.waits}


def drawn(problem: Problem, rng: Random, passes: Schedule | None = None) -> Schedule:
    """Return a random schedule: any choice of modes, any order that precedences allow, some of the waits for memory.

    With `passes` modes and the order of passes are that schedule's, and only the order of tasks is drawn.
    """
    pairs = [(s, j) for s in range(problem.placement.stages) for j in problem.microbatches_of[s]]
    fused = frozenset(pair for pair in pairs if not problem.splittable or rng.random() < 0.5)
    game = Game(problem, fused, rng.choice([*savings(problem, pairs)]), rng.choice([*gather_counts(problem)]))
    game = game if passes is None else game_of(problem, passes)
    needs: dict[Task, set[Task]] = {task: set() for task in game.ticks}
    for before, after in game.lags:
        needs[after].add(before)
    place = dict[Task, int]()

    def may_run(task: Task) -> bool:
        """Also not between a release and the gathering that follows it."""
        gaps = game.gaps.get(game.holder(task.of.stage), []) if task.of.kind in (F, B, W, BW) else []
        return needs[task] <= place.keys() and not any(end in place and begin not in place for end, begin in gaps)

    while len(place) < len(game.ticks):
        task = rng.choice([task for task in game.ticks if task not in place and may_run(task)])
        place[task] = len(place)
    orders = [list(dict.fromkeys((t.of,) for t in place if problem.device(t.of) == d)) for d in range(problem.devices)]
    rows = tuple(map(tuple, orders)) if passes is None else passes.orders
    streams: dict[Resource, list[Task]] = {}
    for task in place:
        for stream in game.streams_of(task):
            streams.setdefault(Resource(*stream), []).append(task)
    often = rng.choice((0, 0, rng.random()))
    waits = [Wait(*pair) for pair in game.waits() if place[pair[0]] < place[pair[1]] and rng.random() < often]
    return Schedule(rows, "", {where: tuple(own) for where, own in streams.items()}, waits)


def always_fits(problem: Problem, schedule: Schedule) -> bool:
    """Return True if no timing that the schedule allows exceeds memory; every reachable set of begun tasks is visited.

    When a task begins exactly its predecessors count as ended; whatever else has ended only frees memory.
    """
    game = game_of(problem, schedule)
    before: dict[Task, set[Task]] = {task: set() for task in game.ticks}
    for one, other in paths(game.ticks, frozenset(game.lags) | arcs_of(game, schedule)):
        before[other].add(one)
    rooms = {memory: room for memory, room in game.rooms.items() if room is not None}
    stack = [frozenset[Task]()]
    seen = {*stack}
    while rooms and stack:
        begun = stack.pop()
        ended = set[Task]().union(*(before[task] for task in begun))
        for memory, room in rooms.items():
            here = [own for own in game.holdings if own.memory == memory]
            taken = sum(own.takes for own in here if begun.intersection(own.begins))
            if taken - sum(own.gives for own in here if ended.issuperset(own.ends)) > room:
                return False
        more = {begun | {task} for task in game.ticks if task not in begun and before[task] <= begun} - seen
        seen |= more
        stack += more
    return True


# Placements, micro-batches, and how many tasks some passes are made of at most.
SHAPES: tuple[tuple[Placement, int, int], ...] = (
    (placement.linear(1), 2, 2),
    (placement.linear(1), 1, 3),
    (placement.linear(2), 1, 3),
    (placement.bidirectional(2), 2, 2),
    (placement.explicit(1, [0, 0]), 1, 2),
)
# Two micro-batches that take chains of their own through one device, for the same parameters.
TWO_CHAINS = replace(placement.explicit(1, [0, 0]), name="chains", chains=((0,), (1,)))


def with_lookups(rng: Random, problem: Problem) -> Problem:
    """Return the problem with lookups: the first tasks of forwards of several tasks may need nothing of the stage
    before."""
    stages = []
    for stage in problem.stages:
        own = stage.tasks_of(F)
        free = rng.randint(1, len(own) - 1) if len(own) > 1 else 0
        tasks = tuple(task._replace(needs_input=part >= free) for part, task in enumerate(own))
        stages.append(replace(stage, tasks=tuple((kind, tasks if kind is F else specs) for kind, specs in stage.tasks)))
    return replace(problem, stages=tuple(stages))


def tiny_tasks(rng: Random, shapes: Sequence[tuple[Placement, int, int]] = SHAPES) -> Problem:
    """Return a problem of few tasks on one to three streams, with durations of 0, transfers and tight memory.

    `shapes` are the placements to draw from, with micro-batches and the most tasks of a pass.
    """
    where, microbatches, parts = rng.choice(shapes)
    stages, longest = where.stages, rng.choice((2, 6))

    def some(low: int = 0, high: int = longest) -> tuple[int, ...]:
        return tuple(rng.randint(low, high) for _ in range(stages))

    kinds: tuple[PassKind, ...] = (F, B, W, BW)
    costs = Costs(some(), some(), some(), some(), some() if rng.random() < 0.6 else (0,) * stages)
    if rng.random() < 0.5 or stages > 2:
        costs, kinds = Costs(costs.forward, costs.fused, None, costs.fused, costs.transfer), (F, BW)
    activation = some(1, 3)
    freed = tuple(rng.choice((0, rng.randint(-2, a), a)) for a in activation)
    capacity: list[int | None] = []
    for stages_of_device in where.stages_of:
        own = sum(activation[s] for s in stages_of_device)
        capacity.append(None if rng.random() < 0.25 else rng.randint(own, microbatches * own + 2))
    one = build(where, microbatches, costs, Memory(activation, freed, tuple(capacity)))
    streams = (COMPUTE, "ep", "copy")[: rng.randint(2, 3)]
    tasks = {
        (kind, stage): tuple(
            TaskSpec(rng.choice(streams), rng.randint(0, longest)) for _ in range(rng.randint(1, parts))
        )
        for kind in kinds
        for stage in range(stages)
        if rng.random() < 0.7
    }
    for (kind, stage), specs in tasks.items():
        if kind is W:
            parts_of_b = len(tasks.get((B, stage), (None,)))
            after = (rng.choice((None, rng.randrange(parts_of_b))) for _ in specs)
            tasks[kind, stage] = tuple(spec._replace(after=a) for spec, a in zip(specs, after, strict=True))
    one = replace(with_tasks(one, tasks), objective=rng.choice((Objective.MAKESPAN, Objective.SPAN)))
    return replace(one, resources=replace(one.resources, transfer_stream=streams[-1])) if rng.random() < 0.4 else one


def with_parameters(rng: Random, problem: Problem) -> Problem:
    """Return the problem with reductions and steps of random streams and durations, for the iteration or its span."""
    streams, longest = (*problem.streams, "dp"), rng.choice((1, 4))

    def once(where: Sequence[str]) -> list[TaskSpec]:
        return [TaskSpec(rng.choice(where), rng.randint(0, longest)) for _ in problem.stages]

    reduce = once(streams) if rng.random() < 0.8 else None
    step = once(streams[:1]) if reduce is None or rng.random() < 0.7 else None
    objective = rng.choice((Objective.ITERATION, Objective.ITERATION, Objective.SPAN))
    buckets = rng.choice((2, 2, 3)) if reduce is not None and rng.random() < 0.4 else 1
    rows = [[Once(kind, task, parts) for task in tasks]
            for kind, tasks, parts in ((REDUCE, reduce, buckets), (STEP, step, 1)) if tasks is not None]  # fmt: skip
    found = replace(problem.with_stages(once=[*zip(*rows, strict=True)]), objective=objective)
    if problem.placement.chains != TWO_CHAINS.chains or problem.chain_arcs.modules:
        return found
    # Both chains compute with the parameters of the first stage.
    stages = (found.stages[0], replace(found.stages[1], once=()))
    return replace(found, stages=stages, parameters=StageParameters((0, 0)))


def tiny_reductions(rng: Random) -> Problem:
    """Return a problem of passes of several tasks with reductions and steps; sometimes two chains share parameters."""
    return with_parameters(rng, tiny_tasks(rng, (*SHAPES, (TWO_CHAINS, 2, 1))))


def tiny_gathers(rng: Random) -> Problem:
    """Return a problem of passes of one task whose parameters are gathered up to three times, with little memory."""
    shapes = ((placement.linear(1), 2), (placement.linear(2), 1), (placement.explicit(1, [0, 0]), 1), (TWO_CHAINS, 2))
    where, microbatches = rng.choice(shapes)

    def some(low: int, high: int) -> tuple[int, ...]:
        return tuple(rng.randint(low, high) for _ in range(where.stages))

    split = where.stages == 1 and rng.random() < 0.3
    times = some(0, 3), some(0, 3), some(0, 3), some(0, 2)
    costs = Costs(times[0], times[1], times[2] if split else None, times[1], times[3])
    if split:
        costs = costs._replace(fused=tuple(b + w for b, w in zip(*times[1:3], strict=True)))
    activation, memory = some(0, 2), some(0, 3)
    capacity = tuple(
        None
        if rng.random() < 0.2
        else max(0, sum(activation[s] for s in on) + max(memory[s] for s in on) + rng.randint(-1, 4))
        for on in where.stages_of
    )
    one = with_parameters(rng, build(where, microbatches, costs, Memory(activation, (0,) * where.stages, capacity)))
    most = rng.choice((1, 2, 3)) if where.stages == 1 else rng.choice((1, 2))
    stream = rng.choice((COMPUTE, "dp", "dp"))
    gather = [Gather(TaskSpec(stream, rng.randint(0, 2)), amount, most) for amount in memory]
    found = one.with_stages(gather=[None if one.parameters.holders and s else own for s, own in enumerate(gather)])
    window = rng.choice((None, None, 1, 2)) if where.devices < where.stages else None
    in_all = rng.choice((None, where.stages, where.stages + 1))
    return replace(found, parameters=replace(found.parameters, most=in_all, window=window))
