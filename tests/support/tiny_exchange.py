"""Tiny problems whose weight passes are two tasks of one stage, aimed at the memory that each of them frees."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import Any, NamedTuple

from ortools.sat.python import cp_model

from pipesched.files.problem_file import problem_from
from pipesched.problem.passes import B, F, PassKind, W
from pipesched.problem.problem import Objective, Problem

# Placement, devices, micro-batches at most.
_SHAPES = (("linear", 1, 4), ("linear", 2, 3), ("linear", 2, 2), ("v-shape", 2, 2))
# Of CP-SAT, in units of its own.
_MOST_WORK = 0.5


class Times(NamedTuple):
    """Ticks of the tasks of one stage: attention and experts of forward and backward, the exchange between, weight
    tasks.

    `send` is None where nothing is exchanged.
    """

    attn: int
    mlp: int
    send: int | None
    attn_back: int
    mlp_back: int
    attn_weight: int
    mlp_weight: int


def exchange(
    placement: str, devices: int, microbatches: int, ticks: Times, memory: Mapping[str, int], **more: object
) -> Problem:
    """Return a problem with the same tasks on all stages; without an exchange all passes are on the compute stream."""
    between = [] if ticks.send is None else [{"name": "send", "on": "comm", "time": ticks.send}]
    tasks = {
        "forward": [{"name": "attn", "time": ticks.attn}, *between, {"name": "mlp", "time": ticks.mlp}],
        "backward": [{"name": "mlp", "time": ticks.mlp_back}, *between, {"name": "attn", "time": ticks.attn_back}],
        "weight": [
            {"name": "mlp-w", "time": ticks.mlp_weight, "after": "mlp"},
            {"name": "attn-w", "time": ticks.attn_weight, "after": "attn"},
        ],
    }
    document = {
        "devices": devices,
        "microbatches": microbatches,
        "placement": placement,
        "streams": ["compute", "comm"],
        "tasks": tasks,
        "memory": memory,
        **more,
    }
    return problem_from(document, "tiny exchange")


def tiny_exchange(random: Random) -> Problem:
    """Return a problem, often of short passes and long weight tasks, with memory for one or two micro-batches a
    stage."""
    placement, devices, most = random.choice(_SHAPES)
    short, long = random.choice(((2, 2), (2, 5), (5, 5)))
    send = random.choice((None, random.randint(1, 5)))
    ticks = Times(
        *(random.randint(0, short) for _ in range(2)),
        send,
        *(random.randint(0, short) for _ in range(2)),
        *(random.randint(0, long) for _ in range(2)),
    )
    memory = {
        "activation": 2,
        "freed_by_backward": random.choice((0, 0, 1, 2)),
        "capacity": random.choice((2, 3, 4)) * (2 if placement == "v-shape" else 1),
    }
    objective, transfer = random.choice(("makespan", "span")), {"transfer": random.randint(0, 2)}
    return exchange(placement, devices, random.randint(2, most), ticks, memory, objective=objective, times=transfer)


def least_value(problem: Problem) -> int:
    """Return the optimum in ticks, by a separate CP-SAT model of starts and memory.

    For the few problems that take too long it is the value of a schedule.
    """
    model, horizon = cp_model.CpModel(), _horizon(problem)
    streams, memory_of = dict[tuple[int, str], list[Any]](), dict[int, list[tuple[Any, int]]]()
    ends, starts = dict[int, list[Any]](), dict[int, list[Any]]()
    for chain in problem.placement.chains:
        for microbatch in problem.microbatches_of[chain[0]]:
            ready: Any = 0
            came = dict[tuple[PassKind, int], list[Any]]()
            for kind, stage in [*((F, s) for s in chain), *((B, s) for s in reversed(chain)), *((W, s) for s in chain)]:
                device, own = problem.placement.stage_device[stage], list[Any]()
                for n, task in enumerate(problem.tasks_of(kind, stage)):
                    start = model.new_int_var(0, horizon, f"{kind}{stage}.{microbatch}.{n}")
                    if kind is W:
                        ready = came[B, stage][-1 if task.after is None else task.after]
                    model.add(start >= ready)
                    ready = start + task.ticks
                    own.append(ready)
                    streams.setdefault((device, task.stream), []).append(
                        model.new_fixed_size_interval_var(start, task.ticks, "")
                    )
                    starts.setdefault(device, []).append(start)
                    ends.setdefault(device, []).append(ready)
                came[kind, stage] = own
                after = problem.placement.next[stage] if kind is F else problem.placement.previous[stage]
                if kind is not W and after is not None:
                    ready += problem.lag(stage, after)
            for stage in chain:
                begun = came[F, stage][0] - problem.tasks_of(F, stage)[0].ticks
                through = model.new_int_var(0, horizon, "")
                model.add_max_equality(through, [came[B, stage][-1], *came[W, stage]])
                device, one = problem.placement.stage_device[stage], problem.stages[stage]
                for until, amount in ((came[B, stage][-1], one.freed), (through, one.activation - one.freed)):
                    size = model.new_int_var(0, horizon, "")
                    memory_of.setdefault(device, []).append((model.new_interval_var(begun, size, until, ""), amount))
    for intervals in streams.values():
        model.add_no_overlap(intervals)
    for device, intervals_of in memory_of.items():
        if (room := problem.room[device]) is not None:
            intervals, amounts = zip(*intervals_of, strict=True)
            model.add_cumulative(list(intervals), list(amounts), room)
    value = model.new_int_var(0, horizon, "value")
    for device, own_ends in ends.items():
        first = model.new_int_var(0, horizon, "")
        model.add_min_equality(first, starts[device])
        for end in own_ends:
            model.add(value >= (end if problem.objective == Objective.MAKESPAN else end - first))
    model.minimize(value)
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.max_deterministic_time = _MOST_WORK
    assert solver.solve(model) in (cp_model.OPTIMAL, cp_model.FEASIBLE)
    return round(solver.objective_value)


def _horizon(problem: Problem) -> int:
    """Return a makespan in ticks that is always enough: all micro-batches one after the other."""
    stages = range(problem.placement.stages)
    once = sum(task.ticks for s in stages for kind in (F, B, W) for task in problem.tasks_of(kind, s))
    return problem.microbatches * (once + 10 * len(stages))
