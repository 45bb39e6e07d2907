"""Creation of the jobs of a problem: tasks of its passes, their precedences, choices of modes, and memory."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import pairwise

from formulations.jobs.gathers import GatherConstraints
from formulations.jobs.jobs import Decision, Job, JobMemory, Jobs, Precedence
from formulations.jobs.quantities import ChoiceId, JobId, PoolId
from pipesched.deadline import SHORT, asking
from pipesched.problem.attainable_spans import largest_denominator
from pipesched.problem.fused_dominance import fused_is_dominated
from pipesched.problem.network.task_network import Mode, PassType
from pipesched.problem.passes import BW, RESHARD, SAVING, UNSHARD, B, F, Pass, PassKind, Task, W
from pipesched.problem.problem import Problem
from pipesched.problem.quantities import DeviceId, MemorySteps, MicrobatchId, StageId

# For activations by stage and micro-batch: the alternative sets of passes; all passes of one set run.
OpenModes = Mapping[tuple[StageId, MicrobatchId], Sequence[frozenset[PassKind]]]


def jobs_of(
    problem: Problem,
    passes: Collection[Pass] | None = None,
    open_modes: OpenModes | None = None,
    gathered: Mapping[StageId, int] | None = None,
    opened: Collection[DeviceId] = (),
) -> Jobs:
    """Return the jobs of all passes or of the subset `passes`; precedences from passes outside the subset are dropped.

    A full backward that is never better than B and W (`fused_is_dominated`) has no job, unless its B is missing in
    `passes`. `open_modes`: for each activation (stage, micro-batch) the sets of passes of which one runs, where not all
    modes are open. `gathered`: the least number of gathers of each stage's parameters, where that is not one. `opened`:
    the devices of an iteration in progress that have begun. Raises ValueError for unequal micro-batches.
    """
    if problem.network.scale:
        raise ValueError("unequal micro-batches are solved as chains (`microbatch_chains`)")
    network = problem.network
    dominated = [fused_is_dominated(problem, stage) for stage in range(problem.placement.stages)]
    running = dict.fromkeys(
        Pass(kind, stage, j)
        for kind, stage in asking(network.tasks)
        for j in network.numbers[kind, stage]
        if (passes is None or Pass(kind, stage, j) in passes)
        and not (kind is BW and dominated[stage] and (passes is None or Pass(B, stage, j) in passes))
    )
    times = {s: (gathered or {}).get(s, 1) for s, own in enumerate(problem.stages) if own.gather is not None}
    chosen = _Chosen(problem, running, open_modes or {}, times)
    types = network.tasks
    zeros = sum(task.ticks == 0 for p in running for task in types[p.kind, p.stage])
    empty = {forward for (forward, _), ticks in network.blocks.items() if ticks == 0}
    zeros += sum(p.kind is F and p.stage in empty for p in running)
    parts = largest_denominator(problem, opened)
    scale = parts * zeros + 1
    jobs = tuple(
        Job(Task(p, part), task.resources, max(1, task.ticks * scale), *chosen.decides(p))
        for p in asking(running, SHORT)
        for part, task in enumerate(types[p.kind, p.stage])
    )
    number = {job.task: n for n, job in enumerate(jobs)}
    precedences = _of_network(problem, running, number, scale)
    if problem.walks.queues:
        precedences += _of_queues(problem, running, number)
    gathers = GatherConstraints(problem, running, number) if times else None
    if gathers is not None:
        precedences += gathers.precedences
    holdings = tuple(_holdings(problem, running, number))
    windows = [] if problem.parameters.window is None else [problem.parameters.window] * problem.devices
    room = (*(one.room for one in network.reservoirs), *windows)
    return Jobs(
        problem, jobs, tuple(precedences), holdings, tuple(chosen.choices), room, parts, zeros,
        gaps=gathers.gaps if gathers is not None else (), most_further_gathers=_most_further(problem, times),
    )  # fmt: skip


def _most_further(problem: Problem, times: Mapping[StageId, int]) -> int | None:
    """Return how many gathers the problem's limit allows in addition to `times`, the required gathers of each stage.

    None without a limit; negative if the required ones exceed it.
    """
    if any(own.gather is not None and own.gather.most < times[s] for s, own in enumerate(problem.stages)):
        return -1
    return None if problem.parameters.most is None else problem.parameters.most - sum(times.values())


class _Chosen:
    """Creates the `choices` of a problem, as `Decision`s.

    They are the backwards with both modes, the activations with several modes, and gathers beyond the required ones.
    """

    def __init__(
        self, problem: Problem, passes: Collection[Pass], open_modes: OpenModes, times: Mapping[StageId, int]
    ) -> None:
        self._problem, self._open_modes = problem, open_modes
        modes: dict[tuple[int, int], set[bool]] = {}
        for p in passes:
            if p.kind in (B, W, BW):
                modes.setdefault((p.stage, p.microbatch), set()).add(p.kind is BW)
        backwards = [Decision(*where, len(Mode)) for where, found in sorted(modes.items()) if len(found) == len(Mode)]
        activations = [
            Decision(stage, j, len(self._options(stage, j)))
            for stage in problem.network.options
            for j in problem.microbatches_of[stage]
            if len(self._options(stage, j)) > 1
            and any(Pass(kind, stage, j) in passes for kind in problem.stages[stage].saving_kinds)
        ]
        again = [
            Decision(*p[1:], 2, gathers=True) for p in passes if p.kind is UNSHARD and p.microbatch >= times[p.stage]
        ]
        self.choices = [*backwards, *activations, *again]
        number = iter(range(len(self.choices)))
        self._backward, self._activation, self._again = (
            {one[:2]: next(number) for one in ones} for ones in (backwards, activations, again)
        )

    def _options(self, stage: StageId, j: MicrobatchId) -> Sequence[frozenset[PassKind]]:
        return self._open_modes.get((stage, j), self._problem.network.options[stage])

    def decides(self, p: Pass) -> tuple[ChoiceId | None, int]:
        """Return (choice, option): the index of the choice on which a pass depends, and the option with which it runs.

        The choice is None for a pass that always runs.
        """
        if p.kind in (B, W, BW):
            return self._backward.get(p[1:]), int(p.kind is BW)
        if p.kind in (UNSHARD, RESHARD):
            return self._again.get(p[1:]), int(p[1:] in self._again)
        if p.kind not in SAVING:
            return None, 0
        choice, options = self._activation.get(p[1:]), self._options(*p[1:])
        return choice, 0 if choice is None else next(n for n, option in enumerate(options) if p.kind in option)


def _of_network(problem: Problem, passes: Collection[Pass], number: dict[Task, JobId], scale: int) -> list[Precedence]:
    """Return the arcs of the task network between the given passes, for every micro-batch, as precedences of jobs.

    `number` gives the job of each task; lags are in steps, `scale` of them to a tick.
    """
    found = []
    for p in asking(passes, SHORT):
        for arc in problem.network.arcs_into[p.kind, p.stage]:
            for j in (p.microbatch,) if arc.share is None else arc.share.numbers(p.microbatch):
                named = (Task(Pass(a.kind, a.stage, j), a.part) for a in arc.alternatives)
                here = tuple(number[task] for task in named if task in number)
                if here:
                    found.append(Precedence(number[Task(p, arc.after.part)], here, arc.lag * scale, arc.optional))
    return found


def _of_queues(problem: Problem, passes: Collection[Pass], number: dict[Task, JobId]) -> Iterator[Precedence]:
    """Yield the precedences of stages that form a queue: forwards run in micro-batch order, and so do backwards.

    `number` gives the job of each task.
    """
    lines: dict[tuple[bool, int], dict[int, list[int]]] = {}
    for p in passes:
        if p.kind in (F, B, BW):
            line = lines.setdefault((p.kind is F, problem.walks.queues[p.stage]), {})
            line.setdefault(p.microbatch, []).append(number[Task(p)])
    for line in lines.values():
        for one, other in pairwise(sorted(line)):
            yield from (Precedence(after, tuple(line[one]), 0) for after in line[other])


def _holdings(problem: Problem, passes: Collection[Pass], number: dict[Task, JobId]) -> Iterator[JobMemory]:
    """Yield the memory that each pass takes and frees, for each memory pool and each limit of gathered stages.

    `number` gives the job of each task.
    """
    network = problem.network

    def ends(p: Pass) -> tuple[tuple[JobId, ...], tuple[JobId, ...]]:
        begin, end = network.begins[p.kind, p.stage], network.ends[p.kind, p.stage]
        return tuple(number[Task(p, part)] for part in begin), tuple(number[Task(p, part)] for part in end)

    amounts: dict[PassType, list[tuple[PoolId, MemorySteps, MemorySteps]]] = {of: [] for of in network.tasks}
    for of, own in amounts.items():
        for pool, (a, b) in network.changes(of):
            # Memory taken at the end counts from the start, and memory freed at the start only from the end on.
            own.append((pool, max(0, a) + max(0, b), max(0, -a) + max(0, -b)))
    for p in asking(passes, SHORT):
        device = network.device_of[p.stage]
        for pool, takes, gives in amounts[p[:2]]:
            if takes or gives:
                yield JobMemory(pool, takes, gives, *ends(p), number[Task(p)])
        if problem.parameters.window is not None and p.kind in (UNSHARD, RESHARD):
            window = len(network.reservoirs) + device
            yield JobMemory(window, p.kind is UNSHARD, p.kind is RESHARD, *ends(p), number[Task(p)])
        forward = p._replace(kind=F)
        if p[:2] in network.given_up and Task(forward) in number:
            yield JobMemory(device, 0, network.given_up[p.kind, p.stage], *ends(forward), number[Task(p)])
