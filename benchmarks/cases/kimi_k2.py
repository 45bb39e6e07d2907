"""Kimi K2's layers on every placement: the stages of the examples, as they are or two in a row as one."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path

from pipesched.files.problem_file import read_problem
from pipesched.problem.passes import BW, B, F, PassKind, W
from pipesched.problem.placement import Placement, bidirectional, linear, v_shape
from pipesched.problem.problem import Problem
from pipesched.problem.stage import Stage, TaskSpec

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def example(name: str) -> Problem:
    """An example with two stages a device, interleaved."""
    return read_problem(EXAMPLES / f"{name}.yaml")


def on_placement(problem: Problem, name: str) -> Problem:
    """The same layers on as many devices: interleaved as in the file, in a V, linear, or twice in two directions."""
    devices = problem.devices
    if name == problem.placement.name:
        return problem
    if name == "v-shape":
        return replace(problem, placement=v_shape(devices), name=f"{problem.name} {name}")
    where: dict[str, Placement] = {"linear": linear(devices), "bidirectional": bidirectional(devices)}
    pairs = [joined(*problem.stages[2 * n : 2 * n + 2]) for n in range(devices)]
    stages: list[Stage] = list(pairs) * len(where[name].chains)
    for chain in where[name].chains:
        for place, stage in enumerate(chain):
            stages[stage] = pairs[place]
    return replace(problem, placement=where[name], stages=tuple(stages), name=f"{problem.name} {name}")


def joined(first: Stage, second: Stage) -> Stage:
    """Two stages in a row as one."""
    behind = len(second.tasks_of(B))
    weight = second.tasks_of(W) + tuple(
        task._replace(after=None if task.after is None else task.after + behind) for task in first.tasks_of(W)
    )
    tasks: tuple[tuple[PassKind, tuple[TaskSpec, ...]], ...] = (
        (F, first.tasks_of(F) + second.tasks_of(F)),
        (B, second.tasks_of(B) + first.tasks_of(B)),
        (W, weight),
        (BW, second.tasks_of(BW) + first.tasks_of(BW)),
    )
    ticks = {kind: sum(task.ticks for task in of) for kind, of in tasks}
    return replace(
        first,
        forward=ticks[F],
        backward=ticks[B],
        weight=ticks[W],
        fused=ticks[BW],
        activation=first.activation + second.activation,
        static=first.static + second.static,
        transfer=max(first.transfer, second.transfer),
        tasks=tasks,
    )


def with_communication(problem: Problem, ratio: Fraction) -> Problem:
    """Communication so many times as long as computation, in the same proportions as before."""
    compute, other = work(problem)
    stages = []
    for stage in problem.stages:
        tasks = tuple(
            (kind, tuple(_longer(stage, task, ratio * compute / other) for task in of)) for kind, of in stage.tasks
        )
        ticks = {kind: sum(task.ticks for task in of) for kind, of in tasks}
        stages.append(
            replace(stage, forward=ticks[F], backward=ticks[B], weight=ticks[W], fused=ticks[BW], tasks=tasks)
        )
    return replace(problem, stages=tuple(stages))


def work(problem: Problem) -> tuple[int, int]:
    """Ticks of one micro-batch that compute, and those that communicate, split backwards."""
    compute = sum(stage.compute_ticks(F, B, W) for stage in problem.stages)
    return compute, sum(
        task.ticks for stage in problem.stages for k in (F, B, W) for task in stage.tasks_of(k)
    ) - compute


def _longer(stage: Stage, task: TaskSpec, factor: Fraction) -> TaskSpec:
    return task if task.stream == stage.stream else task._replace(ticks=round(task.ticks * factor))
