"""Optimal interleaving of one forward with one backward (and its weight tasks) of another micro-batch, with proof."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil
from threading import Event

from formulations.exact.exact_model import ExactModel
from formulations.jobs.jobs import Jobs
from formulations.jobs.jobs_of_problem import jobs_of
from formulations.jobs.quantities import JobId, TimeSteps
from formulations.jobs.schedule_of_starts import schedule_of_starts
from formulations.variables.literals import TooLong
from pipesched.arguments import A_PROBLEM, refuse_other
from pipesched.errors import BadInput, Disagreement
from pipesched.problem.attainable_spans import Value
from pipesched.problem.blocks import NO_BLOCKS
from pipesched.problem.features.chain_arcs import NO_ARCS
from pipesched.problem.features.device_resources import Pool
from pipesched.problem.features.walks import ALIKE
from pipesched.problem.network.task_network import Resource
from pipesched.problem.objectives.makespan import MAKESPAN
from pipesched.problem.passes import BW, B, F, Pass, Task, W
from pipesched.problem.passes_alone import passes_alone
from pipesched.problem.placement import explicit
from pipesched.problem.problem import Problem
from pipesched.problem.quantities import DeviceId, StageId, Ticks
from pipesched.problem.stage import Stage, TaskSpec
from pipesched.results.solution import Status
from pipesched.schedule.schedule import Schedule
from pipesched.schedule.stream_orders import stream_orders
from pipesched.schedule.timeline import Timeline
from pipesched.simulation.simulator import simulate
from pipesched.validation.validator import validate
from solver.backends.cp_sat import EXHAUSTIVE, Parameters, solve_model
from solver.limits import Limits, limits_from
from solver.tasks.dispatch import dispatched
from solver.tasks.job_graph import arcs_of_orders, graph_of, orders_of, with_modes

# In the problem of the pair alone, the forward is of its first stage and micro-batch 0, the backward of its last stage
# and micro-batch 1. One stage is both where a stage is paired with itself.
_FORWARD = Pass(F, 0, 0)


@dataclass(frozen=True)
class Pair:
    """Result of `pair`: value and lower bound in the file's unit of time, and the timeline, which begins at 0.

    The timeline is of the pair's own problem (`pair_problem`): F of stage 0 and micro-batch 0, and the backward of its
    last stage (1, or 0 if both passes are of one stage) and micro-batch 1. `in_turn` is the time, in the file's unit,
    of the passes one after the other, in the shorter of the backward's modes. `interrupted`: the user stopped the
    search.
    """

    value: Fraction
    lower_bound: Fraction
    in_turn: Fraction
    timeline: Timeline
    interrupted: bool = False

    @property
    def problem(self) -> Problem:
        return self.timeline.problem

    @property
    def status(self) -> Status:
        return Status.OPTIMAL if self.value == self.lower_bound else Status.FEASIBLE

    @property
    def orders(self) -> Mapping[Resource, Sequence[Task]]:
        """The order of the pair's tasks on every stream; passes have the stages and micro-batches of `timeline`."""
        return stream_orders(self.timeline.problem, self.timeline.schedule)


def pair(
    problem: Problem,
    forward: StageId,
    backward: StageId,
    limits: Limits | None = None,
    stop: Event | None = None,
    *,
    seconds: float | None = None,
) -> Pair:
    """Return the best order found for the tasks of a forward of one stage and a backward of another or the same one.

    Nothing else runs, and memory is not limited. `limits` None stands for the defaults of `Limits`; `seconds`, if
    given, replaces their time limit. The backward may be split or full, whichever is shorter. Raises `BadInput` where a
    stage is missing or no device runs both. Raises `Disagreement` if CP-SAT contradicts the order found, or if that is
    not valid.
    """
    refuse_other("pair", problem, Problem, A_PROBLEM)
    limits, stop = limits_from("pair", limits, seconds), stop or Event()
    own = pair_problem(problem, forward, backward)
    jobs = jobs_of(own, [_FORWARD, *_backwards(own)])
    starts = min((_dispatched(jobs, fused) for fused in (False, True)), key=lambda found: _steps(jobs, found))
    least: int | Fraction = min(_least(jobs, fused) for fused in (False, True))
    try:
        model = ExactModel(jobs, Fraction(_steps(jobs, starts), jobs.scale), least, starts=starts)
    except TooLong:
        found, bound = starts, least
    else:
        found, bound = _searched(model, starts, least, limits, stop)
    timeline = _judged(jobs, found)
    value = max(map(timeline.end, timeline.schedule.passes()))
    if bound > value:
        raise Disagreement(f"CP-SAT proves {bound} ticks of a pair that takes {value}", EXHAUSTIVE)
    tick = own.tick
    return Pair(value * tick, bound * tick, _without_overlap(own) * tick, timeline, stop.is_set())


def _searched(
    model: ExactModel, starts: dict[JobId, TimeSteps], least: Value, limits: Limits, stop: Event
) -> tuple[dict[JobId, TimeSteps], Value]:
    """Return CP-SAT's best starts (steps by job), or `starts` if it has none, and its bound, at least `least` ticks.

    Raises `Disagreement` if CP-SAT finds no order at all.
    """
    parameters = Parameters(
        limits.seconds, limits.deterministic, limits.seed, limits.workers, limits.gap, clauses_only=True
    )
    answer = solve_model(model.cp, parameters, stop)
    if answer.infeasible:
        raise Disagreement("CP-SAT finds no order of a pair although one is known", EXHAUSTIVE)
    return model.starts(answer.value_of) if answer.has_solution else starts, max(least, model.bound(answer.bound))


best_pair = pair  # its name before there was a command of that name


def pair_problem(problem: Problem, forward: StageId, backward: StageId) -> Problem:
    """Return the problem of two stages alone on one device, with unlimited memory and the objective makespan.

    Stage 0 is that of the forward, stage 1 that of the backward; one stage is both if they are equal. It has two
    micro-batches and no transfers to or from other devices. Raises `BadInput` if the stages are on different devices or
    missing.
    """
    problem = passes_alone(problem.keeping_activations())
    where = problem.placement.stage_device
    for option, stage in (("--forward-stage", forward), ("--backward-stage", backward)):
        if not 0 <= stage < len(where):
            raise BadInput(f"{option}: found {stage}; allowed: a stage from 0 to {len(where) - 1}")
    if where[forward] != where[backward]:
        raise BadInput(
            f"--backward-stage: found {backward}, on device {where[backward]}, with --forward-stage {forward}, on "
            f"device {where[forward]}; allowed: two stages of one device, or one stage twice"
        )
    both = [problem.stages[stage] for stage in dict.fromkeys((forward, backward))]
    return replace(
        problem,
        placement=explicit(1, [0] * len(both)),
        microbatches=2,
        stages=tuple(_alone(stage, where[forward]) for stage in both),
        pools=(Pool(),),
        objective=MAKESPAN,
        name=f"{problem.name}: F of stage {forward} with the backward of stage {backward}",
        links=(),
        walks=ALIKE,  # the two passes are of different stages of an iteration, so no micro-batch order applies
        chain_arcs=NO_ARCS,
    )


def _alone(stage: Stage, device: DeviceId) -> Stage:
    """Return a stage without overlapped blocks and without streams of other devices; `device` becomes device 0."""

    def alone(task: TaskSpec) -> TaskSpec:
        return task._replace(also=tuple(Resource(0, stream) for where, stream in task.also if where == device))

    tasks = tuple((kind, tuple(map(alone, own))) for kind, own in stage.tasks)
    return replace(stage, blocks=NO_BLOCKS, tasks=tasks)


def _backwards(problem: Problem) -> list[Pass]:
    """Return the passes of the backward in `problem`, one of `pair_problem`: B, W and BW, in this order, if they exist.

    They are of its last stage and of micro-batch 1; the forward is that of micro-batch 0 on stage 0.
    """
    last = len(problem.stages) - 1
    return [Pass(kind, last, 1) for kind in (B, W, BW) if (kind, last) in problem.network.tasks]


def _dispatched(jobs: Jobs, fused: bool) -> dict[JobId, TimeSteps]:
    """Return the starts (steps by job) of a first order: among ready tasks the one with the longest tail goes first.

    With `fused` the backward is full, else split.
    """
    graph = graph_of(jobs, with_modes(jobs, fused))
    return dispatched(graph, {n: -tail for n, tail in graph.tails().items()})


def _steps(jobs: Jobs, starts: Mapping[JobId, TimeSteps]) -> TimeSteps:
    return max((start + jobs.jobs[n].steps for n, start in starts.items()), default=0)


def _least(jobs: Jobs, fused: bool) -> Ticks:
    """Return a lower bound in ticks: over streams, the largest least head + work + least tail of its jobs.

    It is that of orders with a full backward if `fused`, else with a split one.
    """
    graph = graph_of(jobs, with_modes(jobs, fused))
    heads, tails, ticks = graph.heads(), graph.tails(), 0
    for here in jobs.on.values():
        on = [n for n in here if n in heads]
        if on:
            work = sum(jobs.jobs[n].steps for n in on)
            steps = min(heads[n] for n in on) + work + min(tails[n] for n in on)
            ticks = max(ticks, ceil(Fraction(steps - jobs.zeros, jobs.scale)))
    return ticks


def _judged(jobs: Jobs, starts: Mapping[JobId, TimeSteps]) -> Timeline:
    """Return the timeline of the pair alone, in the order that `starts` (steps by job) give, and validate the order.

    Each task starts as soon as that order allows, at a whole tick. The validator gets an iteration whose other passes
    run before and after the pair; `Disagreement` if it finds that invalid.
    """
    problem = jobs.problem
    own = schedule_of_starts(jobs, starts, "pair")
    assert own is not None, "memory is not limited"
    stages = range(len(problem.stages))
    first = [Pass(F, s, 1) for s in stages]
    last = [Pass(F, s, 0) for s in stages[1:]]
    for s, j in ((s, j) for j in range(2) for s in reversed(stages) if (s, j) != (stages[-1], 1)):
        last += [Pass(kind, s, j) for kind in problem.network.backwards[0]]
    orders: dict[Resource, list[Task]] = {where: [] for where in problem.network.resources}
    between = stream_orders(problem, own)
    for where, order in orders.items():
        order += [*_tasks_on(problem, where, first), *between.get(where, ()), *_tasks_on(problem, where, last)]
    passes = (*first, *own.passes_on(0), *last)
    whole = Schedule((tuple((p,) for p in passes),), "pair", {where: tuple(order) for where, order in orders.items()})
    violations = validate(simulate(problem, whole))
    if violations:
        raise Disagreement(f"an order of a pair is not valid: {violations[0].text}")
    heads = graph_of(jobs, starts, arcs_of_orders(orders_of(jobs, own).values())).heads()
    return Timeline(problem, own, {jobs.jobs[n].task: start // jobs.scale for n, start in heads.items()})


def _tasks_on(problem: Problem, where: Resource, passes: Sequence[Pass]) -> Iterator[Task]:
    """Yield those tasks of the passes, pass by pass, that occupy the stream `where`."""
    for p in passes:
        for part, task in enumerate(problem.network.tasks[p.kind, p.stage]):
            if where in task.resources:
                yield Task(p, part)


def _without_overlap(problem: Problem) -> Ticks:
    """Return the ticks of the forward and the backward one after the other, in the shorter of the backward's modes."""
    backwards = [problem.duration(p) for p in _backwards(problem)]
    split, fused = sum(backwards[:2]), sum(backwards[-1:])
    return problem.duration(_FORWARD) + (min(split, fused) if len(backwards) == 3 else sum(backwards))
