"""The minimum period of a problem, and unrolling of its pattern over any number of micro-batches."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from itertools import islice
from math import inf
from threading import Event
from typing import Protocol

from formulations.cyclic.block_graph import BlockGraph, graph_of, refuse_no_period
from formulations.cyclic.pattern import Copy, Pattern
from formulations.jobs.jobs_of_problem import jobs_of
from formulations.jobs.schedule_of_starts import schedule_of_starts
from heuristics.catalogue import HEURISTICS
from pipesched.deadline import Deadline, within
from pipesched.errors import Disagreement, DoesNotApply, left_out_note
from pipesched.problem.feasibility import why_infeasible
from pipesched.problem.passes import BW, B, Pass, Slot, Task
from pipesched.problem.problem import Problem
from pipesched.problem.quantities import DeviceId
from pipesched.schedule.metrics import measure
from pipesched.schedule.rescale import value_of
from pipesched.schedule.schedule import Schedule
from pipesched.schedule.timeline import Timeline
from pipesched.simulation.simulator import simulate
from solver.construction.list_scheduling import families
from solver.construction.timing import best_times
from solver.cyclic.pattern_extraction import read_pattern, read_pattern_anywhere
from solver.cyclic.period_bounds import PeriodCertificate, period_certificates
from solver.cyclic.period_search import PeriodSolution, best_pattern
from solver.limits import Limits
from solver.parameters import tunable, tuned
from solver.tasks.dispatch import listed
from solver.tasks.job_graph import arcs_of_orders
from solver.tasks.job_graph import graph_of as jobs_in_order


@dataclass(frozen=True)
@tunable
class ProblemPeriodParams:
    """Long runs that patterns are read from, and shares of time for reading, searching and overlapped blocks."""

    searching_share: float = tuned(0.4, "of the time limit, for schedules of a long run by search", 0, 1)
    searched: int = tuned(6, "schedules of that search, the last ones, that patterns are read from", 1, 100)
    reading_share: float = tuned(0.2, "of the time limit, for patterns of known schedules", 0, 1)
    blocks_share: float = tuned(0.2, "of the time limit, for overlapped blocks, after a search without them", 0, 1)
    least_microbatches: int = tuned(24, "micro-batches of a long run", 4, 1000)
    microbatches_per_device: int = tuned(8, "micro-batches a device of a long run, at most", 1, 100)
    most_passes: int = tuned(5_000, "passes of a long run, if more than the least micro-batches", 100, 10**6)
    lists_per_family: int = tuned(6, "list schedules of each family of policies", 1, 100)


_PARAMS = ProblemPeriodParams()


class SearchLongRun(Protocol):
    """Type of a function that searches for short schedules of a problem with many micro-batches.

    It does so whatever the problem's objective.
    """

    def __call__(self, problem: Problem, limits: Limits, stop: Event) -> list[Schedule]:
        """Return the schedules found within the limits, each shorter than the one before."""


@dataclass(frozen=True)
class ProblemPeriod:
    """The best pattern of a problem, and the certificates of a lower bound on its period, strongest first.

    `period` (None without a pattern) and `bound` are in ticks of `problem` per micro-batch.
    """

    problem: Problem
    found: PeriodSolution
    certificates: tuple[PeriodCertificate, ...]

    @property
    def pattern(self) -> Pattern | None:
        return self.found.pattern

    @property
    def period(self) -> Fraction | None:
        return self.found.period

    @property
    def bound(self) -> Fraction:
        return self.certificates[0].value

    @property
    def optimal(self) -> bool:
        return self.period == self.bound


def best_period(
    problem: Problem,
    limits: Limits | None = None,
    stop: Event | None = None,
    on_progress: Callable[[Pattern], None] = lambda _: None,
    search_long_run: SearchLongRun | None = None,
) -> ProblemPeriod:
    """Return the pattern of least period found, and the proved bound on the period.

    Patterns are read from published and list schedules of a long run, then from those of `search_long_run`; CP-SAT
    looks for shorter ones. `limits` None: those of `Limits()`. `BadInput` for a problem without a period. If nothing
    fits in memory, there is no pattern. `on_progress` gets every better pattern of the last search, beginning with
    those read before.
    """
    refuse_no_period(problem)
    limits, stop = limits or Limits(), stop or Event()
    budget = _Budget(limits)
    notes = list[str]()
    certificates = tuple(period_certificates(problem, notes))
    bound = certificates[0].value
    if why_infeasible(problem) is not None:
        return ProblemPeriod(problem, PeriodSolution(None, bound, 0.0), certificates)
    graph = graph_of(problem)
    long = long_run(problem, graph)
    known = _patterns_of_known(long, graph, bound, budget, stop, notes)
    proved = any(pattern.period == bound for pattern in known)
    if search_long_run is not None and not proved and not stop.is_set():
        try:
            schedules = search_long_run(long, budget.part(_PARAMS.searching_share), stop)
            timelines = (simulate(long, schedule) for schedule in schedules[-_PARAMS.searched :])
            patterns = [read_pattern_anywhere(timeline, graph) for timeline in timelines]
            known += [pattern for pattern in patterns if pattern is not None]
        except Exception as error:
            notes.append(left_out_note("patterns of a long run's schedules", error))
    if graph.overlaps and not stop.is_set():
        plain = _without_blocks(problem, budget.part(1 - _PARAMS.blocks_share), known, stop, notes)
        known += [replace(plain.pattern, graph=graph)] if plain.pattern is not None else []
        notes += plain.notes
    found = best_pattern(graph, bound, budget.part(1.0), known, stop, on_progress)
    found = replace(found, notes=(*notes, *found.notes))
    return ProblemPeriod(problem, replace(found, seconds=time.monotonic() - budget.started), certificates)


class _Budget:
    """Division of the limits among the steps of a search for the period, begun at `started` (`time.monotonic`)."""

    def __init__(self, limits: Limits) -> None:
        self.limits, self.started, self._work = limits, time.monotonic(), limits.deterministic

    def until(self, share: float) -> float:
        """Return the time (`time.monotonic`) when a share of the time limit is over; never, if work is counted."""
        return inf if self._work is not None else self.started + share * self.limits.seconds

    def part(self, share: float) -> Limits:
        """Return limits with this share of the time or counted work that is left.

        Counted work is then taken off what is left.
        """
        seconds = max(0.0, self.limits.seconds - (time.monotonic() - self.started))
        work = None if self._work is None else share * self._work
        if self._work is not None:
            self._work *= 1 - share
        return replace(self.limits, seconds=share * seconds, deterministic=work)


def _patterns_of_known(
    long: Problem, graph: BlockGraph, bound: Fraction, budget: _Budget, stop: Event, notes: list[str]
) -> list[Pattern]:
    """Return the patterns in the middle of published and list schedules of `long`.

    No more are read once one has the period of the bound. Failures are added to `notes`.
    """
    known, soon = list[Pattern](), budget.until(_PARAMS.reading_share)

    def read() -> None:
        for schedule in _schedules(long, notes):
            pattern = read_pattern(simulate(long, schedule), graph)
            if pattern is not None:
                known.append(pattern)
            if time.monotonic() > soon or stop.is_set() or (pattern is not None and pattern.period == bound):
                return

    # Making one schedule of a large problem may take longer than the time limit.
    try:
        within(Deadline.after(budget.until(1.0) - time.monotonic(), stop), read)
    except Exception as error:
        notes.append(left_out_note("patterns of known schedules", error))
    return known


def _without_blocks(
    problem: Problem, limits: Limits, known: Sequence[Pattern], stop: Event, notes: list[str]
) -> PeriodSolution:
    """Return the best pattern found without overlapped blocks, starting from those in `known` that have none.

    It is found much sooner than one with blocks, and the search with blocks starts from it. Failures are added to
    `notes`.
    """
    plain = problem.without_blocks()
    graph = graph_of(plain)
    there = [replace(pattern, graph=graph) for pattern in known if not pattern.overlapped and _runs_in(graph, pattern)]
    return best_pattern(graph, period_certificates(plain, notes)[0].value, limits, there, stop)


def _runs_in(graph: BlockGraph, pattern: Pattern) -> bool:
    """Return True if the pattern fuses backwards only where the graph allows it."""
    fusible = {fusion.backward for fusion in graph.fusions}
    return all(x.block in fusible for x in pattern.fused)


def long_run(problem: Problem, graph: BlockGraph) -> Problem:
    """Return the problem with enough micro-batches for its schedules to be steady in their middle.

    Patterns are read there.
    """
    each = 3 * problem.placement.stages // graph.microbatches
    own = _PARAMS
    many = max(own.least_microbatches, min(own.microbatches_per_device * problem.devices, own.most_passes // each))
    return replace(problem, microbatches=many - many % graph.microbatches)


def _schedules(long: Problem, notes: list[str]) -> Iterator[Schedule]:
    """Yield the schedules to read patterns from.

    First come the published ones, then list schedules. Failures are added to `notes`.
    """
    for heuristic in HEURISTICS:
        try:
            schedule = heuristic.order(long)
        except DoesNotApply:
            continue
        except Exception as error:
            notes.append(left_out_note(heuristic.name, error))
            continue
        yield schedule
    yield from islice(listed(long), _PARAMS.lists_per_family * len(families(long)))


def unroll(pattern: Pattern, problem: Problem, first: int = 0) -> Schedule:
    """Return the pattern run over the problem's micro-batches.

    The first of these runs as the pattern's micro-batch `first`. `first` counts from 0 over the `pattern.copies`
    micro-batches that the pattern repeats. At the start and end, the pattern runs with micro-batches missing; these
    parts are the warm-up and the cool-down. The schedule never uses more memory than the pattern: the pattern's level
    is a sum over micro-batches of what each uses, and no micro-batch uses less than nothing (an activation, less what B
    released or with what B took, and nothing after W). The unrolled order is the pattern's with micro-batches left out,
    so each of its levels is part of such a sum. Levels depend on a device's order alone, so starting everything as soon
    as possible does not change them. `ValueError` for a stage that the pattern does not have; `Disagreement` if passes
    are several tasks and their memory does not suffice.
    """
    for stage, walked in enumerate(problem.microbatches_of):
        if walked and (B, stage) not in pattern.graph.of_pass:
            raise ValueError(f"the pattern has no pass of stage {stage}: it is of a problem with fewer micro-batches")
    if problem.view is None:
        return _of_tasks(pattern, problem, first)
    return Schedule(
        tuple(tuple(_slots(pattern, problem, first, device)) for device in range(problem.devices)), "pipesched"
    )


def _of_tasks(pattern: Pattern, problem: Problem, first: int) -> Schedule:
    """Return the pattern unrolled where passes are several tasks.

    The schedule has the orders of all streams, and the waits that memory needs. The first micro-batch of the problem
    runs as micro-batch `first` of the pattern. Raises `Disagreement` if the memory does not suffice.
    """
    jobs = jobs_of(problem)
    orders = [
        [jobs.number[task] for _, _, _, task in _tasks_in_order(pattern, problem, first, stream)]
        for stream in range(len(pattern.cyclic_orders))
    ]
    running = [n for order in orders for n in order]
    starts = jobs_in_order(jobs, running, arcs_of_orders(orders)).heads()
    schedule = schedule_of_starts(jobs, starts, "pipesched")
    if schedule is None:
        raise Disagreement("a pattern unrolled takes more memory than there is")
    return schedule


def _tasks_in_order(pattern: Pattern, problem: Problem, first: int, device: int) -> list[tuple[int, int, Copy, Task]]:
    """Return the tasks that a device (or stream) of an unrolled pattern runs, in order.

    `device` is an index in `pattern.cyclic_orders`. Each entry has the number of the repetition, the place within it,
    the block's copy, and the task. `first` is the micro-batch of the pattern as which the problem's first one runs.
    """
    task_of = {block: task for task, block in pattern.graph.of_task.items()}
    timed: list[tuple[int, int, Copy, Task]] = []
    for place, x in enumerate(pattern.cyclic_orders[device]):
        if not pattern.runs(x):
            continue
        kind, stage, part = task_of[x.block]
        if kind is B and (x in pattern.fused or problem.network.gradient is BW):
            kind = BW
        skipped = (x.copy - first) % pattern.copies
        repetition = (skipped + first) // pattern.copies + pattern.repetitions[x][device]
        for later, j in enumerate(problem.microbatches_of[stage][skipped :: pattern.copies]):
            timed.append((repetition + later, place, x, Task(Pass(kind, stage, j), part)))
    return sorted(timed, key=lambda one: one[:2])


def _slots(pattern: Pattern, problem: Problem, first: int, device: DeviceId) -> Iterator[Slot]:
    """Yield the slots of a device in an unrolled pattern, in order: one pass each, or an overlapped pair.

    At the ends, a pass of an overlapped pair may run alone, as the other has no micro-batch. `first` is the micro-batch
    of the pattern as which the problem's first one runs.
    """
    partner = dict(pattern.overlapped)
    forward: tuple[int, Copy, Pass] | None = None
    for repetition, _, x, (p, _) in _tasks_in_order(pattern, problem, first, device):
        if forward is not None:
            if (forward[0], partner[forward[1]]) == (repetition, x):
                yield forward[2], p
                forward = None
                continue
            yield (forward[2],)
            forward = None
        if x in partner:
            forward = repetition, x, p
        else:
            yield (p,)
    if forward is not None:
        yield (forward[2],)


def best_unrolled(pattern: Pattern, problem: Problem, latest: float = inf) -> Timeline:
    """Return the pattern unrolled over the problem's micro-batches, with its times, begun where its value is least.

    Each of the pattern's micro-batches is tried as the first. For the objective period, which does not depend on
    warm-up and cool-down, the makespan decides. After `latest` (a time of `time.monotonic`) no more of them are tried,
    but the first always is. `ValueError` for a stage that the pattern does not have; `Disagreement` if passes are
    several tasks and their memory does not suffice.
    """
    timelines = list[Timeline]()
    for first in range(pattern.copies):
        if not timelines or time.monotonic() < latest:
            timelines.append(best_times(problem, unroll(pattern, problem, first)))
    if not problem.objective.repeats:
        return min(timelines, key=partial(value_of, problem))
    return min(timelines, key=lambda timeline: measure(timeline).makespan_ticks)
