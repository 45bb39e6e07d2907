"""Robustness: the mean objective of schedules under random durations, and a search for the least mean."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from itertools import count, islice
from math import inf, sqrt
from threading import Event

from pipesched.arguments import A_SOLUTION, refuse_other
from pipesched.deadline import Deadline, within
from pipesched.int64_arrays import IntArray
from pipesched.problem.chains.microbatch_chains import MicrobatchChains, unequal_microbatches
from pipesched.problem.quantities import Ticks
from pipesched.results.analysis.robustness import Rival, Robustness
from pipesched.results.candidate import Candidate
from pipesched.results.solution import Solution
from pipesched.schedule.chain_timelines import timeline_back, timeline_into
from pipesched.schedule.timeline import Timeline
from pipesched.simulation.noise import BATCH, Noise, under_noise
from pipesched.simulation.sampled_durations import Floats
from pipesched.simulation.simulator import simulate
from solver.construction.timing import best_times
from solver.engine.kernels import kernels_for
from solver.limits import Limits
from solver.local_search.equal_value import halted, with_timeline
from solver.parameters import tunable, tuned
from solver.tasks.dispatch import listed
from solver.tasks.job_units import equal_value_search


@dataclass(frozen=True)
@tunable
class RobustnessParams:
    """Parameters of random walks towards a smaller mean under random durations, and of the comparison under noise."""

    most_published: int = tuned(6, "published schedules compared under noise", 0, 100)
    most_passes: int = tuned(20_000, "passes of all schedules compared under noise", 100, 10**7)
    samples: int = tuned(64, "samples of the noise while walking", 8, 10_000)
    temperatures: tuple[float, ...] = tuned(
        (1 / 4, 1 / 32, 1, 1 / 16), "mean durations of a pass, at first, walk after walk", 1e-3, 10
    )
    cooling: float = tuned(8.0, "times lower at the end of a walk", 1, 1000)
    walk_moves: int = tuned(20_000, "moves of a walk", 100, 10**6)
    moves_per_work: int = tuned(5_000, "moves in a unit of counted work", 100, 10**6)
    list_schedules: int = tuned(12, "list schedules to start from", 0, 1000)
    kept: int = tuned(6, "orders of least mean kept", 1, 100)


_PARAMS = RobustnessParams()


# The noise for which a solve reports the mean.
USUAL = Noise(0.05, BATCH, 0)


def robustness(solution: Solution, noise: Noise = USUAL, seconds: float = inf) -> Robustness | None:
    """Return the mean value under noise of a solution's schedule, and of the best few published schedules that fit.

    Means are in the file's unit. A published schedule counts only if its value without noise is within one relative
    deviation of the solution's; the best of these are listed by that value. None without a schedule, for the objective
    period, for very many passes, and if sampling takes more than `seconds`.
    """
    refuse_other("robustness", solution, Solution, A_SOLUTION)
    return within(Deadline.after(seconds), lambda: _robustness(solution, noise))


def _robustness(solution: Solution, noise: Noise) -> Robustness | None:
    timeline, problem = solution.timeline, solution.problem
    if timeline is None or problem.objective.repeats or solution.value_ticks is None:
        return None
    most = min(_PARAMS.most_published, _PARAMS.most_passes // max(1, sum(map(len, timeline.schedule.orders))))
    if not most:
        return None
    near = [c for c in solution.candidates if c.fits and _value(c) <= (1 + noise.deviation) * solution.value_ticks]
    ours, published = _samples(timeline, noise), []
    for one in sorted(near, key=_value)[:most]:
        if one.timeline is not None:
            theirs = _samples(best_times(problem, one.timeline.schedule), noise)
            error = float((ours - theirs).std()) / sqrt(max(1, noise.samples - 1))
            published.append(Rival(one.name, float(theirs.mean()), error))
    fresh = noise._replace(seed=noise.seed + 1)
    return Robustness(noise, float(ours.mean()), _mean(timeline, fresh), tuple(published))


def most_robust(
    solution: Solution,
    noise: Noise,
    limits: Limits,
    on_progress: Callable[[float], None] | None = None,
    stop: Event | None = None,
) -> Solution:
    """Return the solution with the schedule of least mean under noise that is found within the limits.

    The search starts from the solution's schedule, the published ones that fit, and list schedules; random walks change
    their orders, and all orders are evaluated on the same samples. The value of the result without noise may be larger;
    the lower bound stays that of the problem without noise. `on_progress` is called with the mean of the solution's
    schedule, then with every better one, in the file's unit. A solution without a schedule is returned unchanged.
    Raises `ValueError` for the period.
    """
    refuse_other("most_robust", solution, Solution, A_SOLUTION)
    if solution.problem.objective.repeats:
        raise ValueError("the mean under noise is of makespan or span")
    if solution.timeline is None:
        return solution
    chains = unequal_microbatches(solution.problem)
    if chains is not None:
        return _of_chains(chains, solution, noise, limits, on_progress, stop)
    stop = stop or Event()
    search = _Search(solution, noise, limits, on_progress or (lambda _: None))
    seconds = None if limits.deterministic is not None else limits.seconds
    if seconds is not None:
        kernels_for(solution.problem).begin()
    halted(search.run, stop, seconds)
    return replace(with_timeline(solution, search.pool[0][1]), interrupted=stop.is_set())


def _of_chains(
    chains: MicrobatchChains,
    solution: Solution,
    noise: Noise,
    limits: Limits,
    on_progress: Callable[[float], None] | None,
    stop: Event | None,
) -> Solution:
    """Run `most_robust` for unequal micro-batches on the equivalent problem with a chain for each factor.

    `on_progress` gets the first mean and every better one, in the file's unit.
    """
    assert solution.timeline is not None
    candidates = tuple(
        one if one.timeline is None else replace(one, timeline=timeline_into(chains, one.timeline))
        for one in solution.candidates
    )
    own = replace(
        solution, problem=chains.problem, timeline=timeline_into(chains, solution.timeline), candidates=candidates
    )
    found = most_robust(own, noise, limits, on_progress, stop)
    assert found.timeline is not None
    return replace(with_timeline(solution, timeline_back(chains, found.timeline)), interrupted=found.interrupted)


class _Search:
    """Rounds of random walks, each from one of the best few schedules known.

    `pool` has their (mean in the file's unit, timeline), the least mean first; it is never empty. `walking` is the
    noise that walks see, with fewer samples than `noise`.
    """

    def __init__(self, solution: Solution, noise: Noise, limits: Limits, on_progress: Callable[[float], None]) -> None:
        assert solution.timeline is not None
        self.solution, self.problem, self.noise, self.limits, self.on_progress = (
            solution, solution.problem, noise, limits, on_progress,
        )  # fmt: skip
        self.workers = limits.workers or os.cpu_count() or 1
        self.walking = noise._replace(samples=min(noise.samples, _PARAMS.samples))
        self.pool: list[tuple[float, Timeline]] = []
        self.keep([solution.timeline])

    def run(self, halt: IntArray) -> None:
        """Evaluate all starts, then run rounds of walks until another thread sets `halt[0]`.

        Where work is counted the walks of each worker have as many moves as it allows.
        """
        for timeline in self.starts():
            if halt[0]:
                return
            self.keep([timeline])
        units = self.limits.deterministic
        if units is None and not kernels_for(self.problem).wait(lambda: bool(halt[0])):
            return
        left = inf if units is None else int(units * _PARAMS.moves_per_work) // self.workers
        with ThreadPoolExecutor(self.workers) as threads:
            for number in count():
                moves = int(min(left, _PARAMS.walk_moves))
                if halt[0] or not moves:
                    return
                left -= moves
                jobs = range(number * self.workers, (number + 1) * self.workers)
                found = list(threads.map(partial(self.walk, moves=moves, halt=halt), jobs))
                self.keep([timeline for timeline in found if timeline is not None])

    def starts(self) -> Sequence[Timeline]:
        """Return timelines to start from; for the span also with no device delayed, since delays can be fragile."""
        fitting = [c.timeline.schedule for c in self.solution.candidates if c.fits and c.timeline is not None]
        lists = islice(listed(self.problem), _PARAMS.list_schedules)
        timings = (best_times, simulate) if self.problem.objective.by_device else (simulate,)
        assert self.solution.timeline is not None
        return [
            timed(self.problem, one) for one in (self.solution.timeline.schedule, *fitting, *lists) for timed in timings
        ]

    def walk(self, job: int, moves: int, halt: IntArray) -> Timeline | None:
        """Make walk number `job`, of `moves` moves, from a timeline of the pool; return the best one it met.

        None where the orders of the start cannot be changed. Another thread may end it by setting `halt[0]`.
        """
        start = self.pool[job // len(_PARAMS.temperatures) % len(self.pool)][1]
        seed, search = self.limits.seed * 1_000_003 + job, equal_value_search(start)
        if search is None:
            return None
        heat = _PARAMS.temperatures[job % len(_PARAMS.temperatures)]
        return search.for_mean(self.walking, None, (heat, heat / _PARAMS.cooling), moves, seed, halt)

    def keep(self, timelines: Sequence[Timeline]) -> None:
        """Add timelines to the pool, which keeps the few of least mean; a mean that is there already is not added."""
        before = self.pool[0][0] if self.pool else None
        known = {mean for mean, _ in self.pool}
        for timeline in timelines:
            mean = _mean(timeline, self.noise)
            if mean not in known:
                known.add(mean)
                self.pool.append((mean, timeline))
        self.pool = sorted(self.pool, key=lambda one: one[0])[: _PARAMS.kept]
        if before is None or self.pool[0][0] < before:
            self.on_progress(self.pool[0][0])


def _value(candidate: Candidate) -> Ticks:
    assert candidate.timeline is not None
    assert candidate.metrics is not None
    return candidate.metrics.value_ticks(candidate.timeline.problem.objective)


def _samples(timeline: Timeline, noise: Noise) -> Floats:
    """Return the objective value of a timeline in every sample of the noise, in the file's unit."""
    return under_noise(timeline, *noise).of(timeline.problem.objective).samples * float(timeline.problem.tick)


def _mean(timeline: Timeline, noise: Noise) -> float:
    return float(_samples(timeline, noise).mean())
