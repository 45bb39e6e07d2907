"""What tests build with: small problems, hand-written and random orders, and times worked out without the simulator."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from random import Random

from pipesched.files.problem_file import problem_from
from pipesched.problem.network.task_network import Resource
from pipesched.problem.passes import BW, B, F, Pass, Slot, Task, W
from pipesched.problem.problem import Problem
from pipesched.problem.stage import COMPUTE, TaskSpec
from pipesched.schedule.schedule import Schedule, Wait, parse_slot, schedule_of
from tests.support.columns import costs_of, with_tasks

# Says of a stage and a micro-batch whether its backward runs fused (BW) rather than split (B, later W).
IsFused = Callable[[int, int], bool]

TIMES: Mapping[str, object] = {"forward": 1, "backward": 1, "weight": 1}
FULL: Mapping[str, object] = {"forward": 1, "backward": 2}  # a backward that cannot be split


def problem(devices: int, microbatches: int, **keys: object) -> Problem:
    """A problem file's document, as a problem: forward, backward and weight of one tick unless `times` says more."""
    document = {"devices": devices, "microbatches": microbatches, "times": dict(TIMES)} | keys
    return problem_from(document, "test", "test")


def gpt_1_5b(devices: int, microbatches: int, activations: int, objective: str = "span") -> Problem:
    """The 1.5B profile of the Zero Bubble paper with memory for some activations, as its instance files count it."""
    return problem(
        devices,
        microbatches,
        times={"forward": 18.522, "backward": 18.086, "weight": 9.337, "transfer": 0.601},
        memory={"activation": 131, "freed_by_backward": 83, "capacity": 131 * activations},
        objective=objective,
    )


def schedule(*rows: str, name: str = "by-hand") -> Schedule:
    """One row a device: `F0.0 F0.1 F0.2&BW0.0`."""
    return Schedule(tuple(tuple(map(parse_slot, row.split())) for row in rows), name)


def never(stage: int, microbatch: int) -> bool:
    return False


def always(stage: int, microbatch: int) -> bool:
    return True


def visit(stage: int, microbatch: int, fused: bool) -> list[Pass]:
    """The passes of one micro-batch at one stage."""
    return [Pass(kind, stage, microbatch) for kind in ((F, BW) if fused else (F, B, W))]


def passes_of(one: Problem, is_fused: IsFused) -> list[list[Pass]]:
    """Every pass of a problem, device by device."""
    held: list[list[Pass]] = [[] for _ in range(one.devices)]
    for stage, device in enumerate(one.placement.stage_device):
        for j in range(one.microbatches):
            if stage in one.chain_of(j):
                held[device] += visit(stage, j, is_fused(stage, j))
    return held


def random_kinds(one: Problem, rng: Random) -> IsFused:
    """Each backward fused or split, by chance; all fused where no backward splits."""
    fused = {
        (stage, j): not one.splittable or rng.random() < 0.5
        for stage in range(one.placement.stages)
        for j in range(one.microbatches)
    }
    return lambda stage, j: fused[stage, j]


def random_order(one: Problem, rng: Random, pairs: float = 0.0) -> Schedule:
    """A random order that runs to its end; `pairs` is how often a forward and a backward after it share a slot."""
    is_fused = random_kinds(one, rng)
    todo = {p for held in passes_of(one, is_fused) for p in held}
    orders: list[list[Pass]] = [[] for _ in range(one.devices)]
    while todo:
        ready = sorted(p for p in todo if not any(before in todo for before, _ in waits(one, p, is_fused)))
        chosen = rng.choice(ready)
        orders[one.device(chosen)].append(chosen)
        todo.remove(chosen)
    paired = Schedule(tuple(_paired(order, rng, pairs) for order in orders), "random")
    return schedule_of(orders, "random") if times_by_hand(one, paired) is None else paired


def shuffled(one: Problem, rng: Random, pairs: float = 0.0) -> Schedule:
    """A random order that mostly cannot run."""
    orders = passes_of(one, random_kinds(one, rng))
    for order in orders:
        rng.shuffle(order)
    return Schedule(tuple(_paired(order, rng, pairs) for order in orders), "shuffled")


def _paired(order: list[Pass], rng: Random, pairs: float) -> tuple[Slot, ...]:
    slots: list[Slot] = []
    for p in order:
        last = slots[-1] if slots else ()
        if p.kind in (B, BW) and len(last) == 1 and last[0].kind is F and rng.random() < pairs:
            slots[-1] = (last[0], p)
        else:
            slots.append((p,))
    return tuple(slots)


PLACEMENTS: dict[str, Callable[[int], dict[str, object]]] = {
    "linear": lambda p: {"placement": "linear"},
    "interleaved": lambda p: {"placement": "interleaved", "chunks": 2},
    "wave": lambda p: {"placement": "wave", "chunks": 3},
    "v-shape": lambda p: {"placement": "v-shape"},
    "bidirectional": lambda p: {"placement": "bidirectional"},
    "explicit": lambda p: {"placement": [*range(p), p - 1, 0, p // 2]},
}


def random_problem(rng: Random, blocks: bool = True, parts: bool = True) -> Problem:
    """Up to three devices and micro-batches, any placement, times with zeros; overlapped blocks and parts by chance."""
    devices = rng.randint(1, 3)
    keys = PLACEMENTS[rng.choice(sorted(PLACEMENTS))](devices)
    stages = problem(devices, 1, **keys).placement.stages

    def some(most: int) -> list[int]:
        return [rng.randint(0, most) for _ in range(stages)]

    times = {"forward": some(3), "backward": some(3), "transfer": some(2)}
    if rng.random() < 0.7:
        times |= {"weight": some(2), "fused": some(4)}
    if blocks and rng.random() < 0.5:
        times["overlapped"] = some(5)
    one = problem(devices, rng.randint(1, 3), **keys, times=times)
    if rng.random() < 0.3:
        one = replace(one, links=tuple(tuple(rng.randint(0, 2) for _ in range(devices)) for _ in range(devices)))
    return with_parts(one, rng) if parts and rng.random() < 0.3 else one


def with_parts(one: Problem, rng: Random) -> Problem:
    """Some passes become several tasks on several streams, and transfers, where there are no blocks, some of these."""
    kinds = (F, B, W, BW) if one.splittable else (F, BW)
    streams = (COMPUTE, "ep", "d2h")
    parts = {
        (kind, stage): tuple(TaskSpec(rng.choice(streams), rng.randint(0, 2)) for _ in range(rng.randint(1, 3)))
        for kind in kinds
        for stage in range(one.placement.stages)
        if rng.random() < 0.5
    }
    for (kind, stage), tasks in parts.items():
        if kind is W:
            after = [None, *range(len(parts.get((B, stage), (None,))))]
            parts[kind, stage] = tuple(task._replace(after=rng.choice(after)) for task in tasks)
    if rng.random() < 0.5 and not one.overlaps:
        one = replace(one, transfer_stream=rng.choice(streams))
    return with_tasks(one, parts)


# The rest says a second time, from the definitions, what precedes what and how an order runs.


@dataclass(frozen=True)
class Job:
    """What runs in one go: a task, or a block of two passes."""

    tasks: tuple[Task, ...]
    stream: str
    ticks: int
    ends: tuple[Pass, ...]  # the passes that end with it, if those of several tasks on their own do


def waits(one: Problem, p: Pass, is_fused: IsFused) -> Iterator[tuple[Pass, int]]:
    """The passes that must have ended before p starts, and how long before."""
    kind, stage, j = p
    chain = next(chain for chain in one.placement.chains if stage in chain)
    at = chain.index(stage)

    def transfer(a: int, b: int, back: bool = False) -> int:
        here, there = (one.placement.stage_device[s] for s in ((b, a) if back else (a, b)))
        return one.stages[a].transfer + (one.links[here][there] if one.links else 0) if here != there else 0

    if kind is W:
        yield Pass(B, stage, j), 0
    elif kind is F:
        if at > 0:
            yield Pass(F, chain[at - 1], j), transfer(chain[at - 1], stage)
    else:
        yield Pass(F, stage, j), 0
        if at + 1 < len(chain):
            yield (
                Pass(BW if is_fused(chain[at + 1], j) else B, chain[at + 1], j),
                transfer(stage, chain[at + 1], back=True),
            )


def jobs(one: Problem, order: tuple[Slot, ...]) -> list[Job]:
    """What a device runs, in its order."""
    costs, found = costs_of(one), []
    for slot in order:
        if len(slot) == 2 and slot[1].kind is BW and costs.overlapped is not None:
            block = costs.overlapped[slot[0].stage]
            found.append(Job((Task(slot[0]), Task(slot[1])), one.stages[0].stream, block, slot))
            continue
        for p in slot:
            plain = {F: costs.forward, B: costs.backward, W: costs.weight, BW: costs.fused}[p.kind]
            assert plain is not None
            parts = dict(one.stages[p.stage].tasks).get(p.kind) or (TaskSpec(one.stages[0].stream, plain[p.stage]),)
            for number, (stream, ticks, *_) in enumerate(parts):
                ends = (p,) if number == len(parts) - 1 or p.kind is W else ()
                found.append(Job((Task(p, number),), stream, ticks, ends))
            if one.transfer_stream is not None and (ticks := sent_for(one, p)):
                found.append(Job((Task(p, len(parts)),), one.transfer_stream, ticks, ()))
    return found


def sent_for(one: Problem, p: Pass) -> int:
    """How long the tensor of a pass takes to another device; 0 where it has none to send."""
    if p.kind is W:
        return 0
    kind = F if p.kind is F else B
    users = (Pass(kind, stage, p.microbatch) for stage in one.chain_of(p.microbatch) if stage != p.stage)
    sent = (lag for user in users for before, lag in waits(one, user, never) if before == Pass(kind, *p[1:]))
    return next(sent, 0)


def task_waits(one: Problem, orders: Schedule) -> Callable[[Task], list[tuple[Task, int]]]:
    """Says of a task which ones must have ended before it starts, and how long before; events between streams too."""
    every = [job for order in orders.orders for job in jobs(one, order)]
    last = {p: job.tasks[job.ends.index(p) if len(job.tasks) > 1 else 0] for job in every for p in job.ends}
    held = {task for job in every for task in job.tasks}
    fused = {(p.stage, p.microbatch) for p in orders.passes() if p.kind is BW}

    def of(task: Task) -> list[tuple[Task, int]]:
        p, part = task
        found = [(event.before, 0) for event in orders.waits if event.after == task]
        parts = dict(one.stages[p.stage].tasks).get(p.kind, (TaskSpec("", 0),))
        if p.kind is W:
            after = parts[part].after
            before = last[Pass(B, *p[1:])] if after is None else Task(Pass(B, *p[1:]), after)
            return [*found, (before, 0)]
        if part:
            return [*found, (Task(p, part - 1), 0)]
        for other, lag in waits(one, p, lambda s, j: (s, j) in fused):
            sender = Task(other, last[other].part + 1)
            found.append((sender, 0) if one.transfer_stream and lag and sender in held else (last[other], lag))
        return found

    return of


def times_by_hand(
    one: Problem, orders: Schedule, delay: Callable[[], int] = lambda: 0, idle: list[int] | None = None
) -> dict[Task, int] | None:
    """Starts found by running whatever stands first in a queue and may run; None if the queues come to a halt.

    `delay` is added before every job, `idle[d]` is how long device d must wait.
    """
    waits_of = task_waits(one, orders)
    queues: dict[tuple[int, str], list[Job]] = {}
    for device, order in enumerate(orders.orders):
        for job in jobs(one, order):
            queues.setdefault((device, job.stream), []).append(job)
    for resource, tasks in orders.task_orders.items():
        queues[resource].sort(key=lambda job, place=tasks.index: place(job.tasks[0]))  # type: ignore[misc]
    free = {queue: idle[queue[0]] if idle else 0 for queue in queues}
    starts: dict[Task, int] = {}
    task_end: dict[Task, int] = {}

    def earliest(job: Job) -> int | None:
        before = [wait for task in job.tasks for wait in waits_of(task)]
        if any(task not in task_end for task, _ in before):
            return None
        return max((task_end[task] + lag for task, lag in before), default=0)

    moved = True
    while moved:
        moved = False
        for queue, waiting in queues.items():
            while waiting and (bound := earliest(waiting[0])) is not None:
                job, moved = waiting.pop(0), True
                start = max(bound, free[queue]) + delay()
                free[queue] = start + job.ticks
                starts |= dict.fromkeys(job.tasks, start)
                task_end |= dict.fromkeys(job.tasks, start + job.ticks)
    return None if any(queues.values()) else starts


def with_random_task_orders(one: Problem, orders: Schedule, rng: Random) -> Schedule:
    """The same passes; each stream runs its tasks as they are drawn among those whose predecessors have run."""
    left = [(device, job) for device, order in enumerate(orders.orders) for job in jobs(one, order)]
    waits_of = task_waits(one, Schedule(orders.orders))
    chosen: dict[Resource, list[Task]] = {}
    done: dict[Task, int] = {}  # the tasks that have run, and their place among all

    def ready(job: Job) -> bool:
        return all(before in done for task in job.tasks for before, _ in waits_of(task))

    while left:
        drawn = rng.choice([entry for entry in left if ready(entry[1])])
        left.remove(drawn)
        device, job = drawn
        chosen.setdefault(Resource(device, job.stream), []).append(job.tasks[0])
        done |= dict.fromkeys(job.tasks, len(done))
    named = sorted(task for tasks in chosen.values() for task in tasks)
    pairs = (sorted(rng.sample(named, 2), key=done.__getitem__) for _ in range(rng.randint(0, 2)) if len(named) > 1)
    events = tuple(Wait(*pair) for pair in pairs)
    return Schedule(orders.orders, orders.name, {where: tuple(tasks) for where, tasks in chosen.items()}, events)
