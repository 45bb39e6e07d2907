"""End of a solve: simulate the remaining published schedules, then search less memory and more slack at equal value."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from math import inf

from heuristics.catalogue import HEURISTICS, Heuristic
from pipesched.deadline import Deadline, within
from pipesched.errors import left_out_note
from pipesched.int64_arrays import IntArray
from pipesched.problem.formatting import counted
from pipesched.results.candidate import Candidate
from pipesched.results.solution import Solution
from pipesched.schedule.metrics import Metrics, measure
from pipesched.schedule.timeline import Timeline
from pipesched.simulation.noise import Noise, under_noise
from solver.construction.timing import best_times
from solver.cyclic.extended_candidate import beats, extended_candidate
from solver.engine.kernels import NOT_REFINED, STILL_COMPILING
from solver.engine.search import SEARCH, Search
from solver.local_search.equal_value import halted, with_timeline
from solver.memory_weights import weights_of
from solver.parameters import tunable, tuned
from solver.published import candidate
from solver.tasks.job_units import equal_value_search

_REFINING = "less memory and more slack"


@dataclass(frozen=True)
@tunable
class FinishParams:
    """Parameters of the random walks among schedules of equal value, and of the table of published schedules.

    `table_share` is of the time limit. A walk has `walk_moves` moves, may end `extra_seconds` beyond the limit, and is
    left out with less than `least_seconds` left. The first `temperature` is in mean durations of a pass, divided by
    `cooling` at the end; `noise` is a relative standard deviation of durations, drawn `noise_samples` times.
    """

    table_share: float = tuned(0.2, "of the time limit, for published schedules not tried so far", 0, 1)
    extra_seconds: float = tuned(1.0, "s beyond the time limit in which a walk that ends by itself may end", 0, 5)
    least_seconds: float = tuned(1.0, "s left, below which there is no walk", 0, 10)
    walk_moves: int = tuned(20_000, "moves of a walk", 100, 10**6)
    temperature: float = tuned(1 / 32, "mean durations of a pass, at first", 1e-3, 1)
    cooling: float = tuned(8.0, "times lower at the end", 1, 1000)
    noise: float = tuned(0.05, "standard deviation of durations that stands for slack", 0.01, 0.5)
    noise_samples: int = tuned(64, "samples of it", 8, 1000)


_PARAMS = FinishParams()
# The mean under this noise measures slack in the walks.
_SLACK = Noise(_PARAMS.noise, _PARAMS.noise_samples, 0)


def finished(search: Search) -> Solution:
    """Return the solution of a search that is over, after simulating the published schedules that it has not tried.

    Where time remains, the schedule is replaced by one of the same value with less memory or more slack. With a target
    value, or after a stop, neither is done.
    """
    if search.limits.target is not None or search.stop.is_set():
        return search.solution()
    complete_table(search)
    solution = search.solution()
    if not solution.interrupted:
        try:
            # A little longer than the time of the walks in it, which end by themselves.
            seconds = max(search.clock.allowed(), 0.0) + _PARAMS.extra_seconds
            solution = within(Deadline.after(seconds, search.stop), lambda: refined(solution, search)) or solution
        except Exception as error:
            solution = replace(solution, notes=(*solution.notes, left_out_note(_REFINING, error)))
    return replace(solution, wall_seconds=search.clock.seconds, interrupted=search.stop.is_set())


def complete_table(search: Search) -> None:
    """Simulate the published schedules that the search has not tried yet; those that search for themselves run last.

    The results are appended to `search.candidates`, and schedules that fit the memory are offered. A note says how many
    were left out for lack of time.
    """
    tried = {one.name for one in search.candidates}
    clock, limit = search.clock, search.limits.seconds
    until = inf if clock.counts_work else min(limit, clock.seconds + clock.share(_PARAMS.table_share))
    left_out = 0
    for heuristic in sorted(HEURISTICS, key=lambda one: one.searched):
        if heuristic.name in tried:
            continue
        found = None if search.stop.is_set() else _compared(search, heuristic, until)
        if found is None:
            left_out += 1
            continue
        search.candidates += (found,)
        if found.defect:
            search.incumbent.note(found.reason)
        if found.fits and found.timeline is not None:
            search.incumbent.phase = found.name
            with search.incumbent.defects_noted(found.name):
                search.incumbent.offer(best_times(search.problem, found.timeline.schedule))
    if left_out and search.incumbent.timeline is not None:
        untried = counted(left_out, "published schedule")
        search.incumbent.note(f"{untried} not tried, for want of time; a longer limit tries them")


def _compared(search: Search, heuristic: Heuristic, until: float) -> Candidate | None:
    """Return the result of a published schedule; None if it cannot be had before the clock shows `until` seconds.

    For very many micro-batches it is computed from fewer where that is exact, but a schedule that would be the best
    known is simulated in full.
    """
    clock, known = search.clock, search.incumbent.value
    if search.very_long and search.chains is None:
        work = partial(extended_candidate, search.problem, heuristic)
        found = within(Deadline.after(until - clock.seconds, search.stop), work)
        if found is not None and not (found.fits and beats(found, known)):
            return found
    if clock.seconds + SEARCH.seconds_per_task * search.passes > until:
        return None
    return within(
        Deadline.after(until - clock.seconds, search.stop), partial(candidate, search.problem, heuristic, search.chains)
    )


def refined(solution: Solution, search: Search) -> Solution:
    """Return a solution of the same value with less memory or, with no more memory, with more slack.

    Slack is measured by the mean value under random durations. First the schedule of least memory is taken, of the
    solution's and of the published ones with the same value; if there is no time to simulate those again, the solution
    is returned unchanged. In the time that remains, random walks go through other schedules of the same value, unless
    their code is still being compiled, which a note says. The walks are short, and give the same result in every run in
    which they reach their end.

    A solution without a schedule, or of an objective that repeats, is returned unchanged.
    """
    if solution.timeline is None or solution.problem.objective.repeats:
        return solution
    fitting = sum(one.fits for one in solution.candidates)
    if not search.clock.counts_work and search.clock.left() < fitting * search.passes * SEARCH.seconds_per_task:
        return solution
    known = [solution, *(with_timeline(solution, one) for one in _as_good(solution))]
    best = min(known, key=_rank)
    deadline = None if search.clock.counts_work else search.clock.left()
    if search.very_long or (deadline is not None and deadline < _PARAMS.least_seconds):
        return best
    search.incumbent.enter(_REFINING)
    if not search.compiled(search.kernels):  # the answer does not need them, so it does not wait
        return best if STILL_COMPILING in best.notes else replace(best, notes=(*best.notes, NOT_REFINED))
    deadline = None if search.clock.counts_work else search.clock.left()

    def walks(halt: IntArray) -> Solution:
        return _more_slack(_less_memory(best, search.limits.seed, halt), search.limits.seed, halt)

    return halted(walks, search.stop, deadline)


def _as_good(solution: Solution) -> list[Timeline]:
    """Return the timelines of those published schedules that fit the memory and have the solution's value.

    They have their best times, and are in the order of the solution's candidates.
    """
    problem = solution.problem

    def timed(one: Candidate) -> Timeline | None:
        return best_times(problem, one.timeline.schedule) if one.fits and one.timeline is not None else None

    found = [timeline for timeline in map(timed, solution.candidates) if timeline is not None]
    return [timeline for timeline in found if measure(timeline).value_ticks(problem.objective) == solution.value_ticks]


def _less_memory(solution: Solution, seed: int, halt: IntArray) -> Solution:
    assert solution.timeline is not None
    assert solution.value_ticks is not None
    search = equal_value_search(solution.timeline)
    if search is None:
        return solution
    found = search.for_memory(solution.value_ticks, weights_of(solution.problem), _PARAMS.walk_moves, seed, halt)
    return solution if found is None else min(solution, with_timeline(solution, found), key=_rank)


def _more_slack(solution: Solution, seed: int, halt: IntArray) -> Solution:
    """Return a solution of the same value with more slack, found by a walk with the solution's own peaks as capacities.

    The solution itself is returned if the walk finds none. Setting `halt[0]` ends the walk. `seed` is that of its
    random numbers.
    """
    timeline, problem = solution.timeline, solution.problem
    assert timeline is not None
    assert solution.metrics is not None
    limited = problem.with_room(solution.metrics.peak_quanta)
    search = equal_value_search(replace(timeline, problem=limited))
    if search is None:
        return solution
    heats = _PARAMS.temperature, _PARAMS.temperature / _PARAMS.cooling
    found = search.for_mean(_SLACK, solution.value_ticks, heats, _PARAMS.walk_moves, seed, halt)
    if found is None:
        return solution
    other = with_timeline(solution, replace(found, problem=problem))
    return min(solution, other, key=lambda one: (one.value_ticks, _mean(one)))


def _mean(solution: Solution) -> float:
    assert solution.timeline is not None
    return under_noise(solution.timeline, *_SLACK).of(solution.problem.objective).mean


def _rank(solution: Solution) -> tuple[int, Fraction, int]:
    """Return the sort key: value in ticks, largest peak of a device as a share of its capacity, sum of all peaks."""
    metrics: Metrics | None = solution.metrics
    assert metrics is not None
    levels = zip(metrics.peak_quanta, weights_of(solution.problem), strict=True)
    return (
        metrics.value_ticks(solution.problem.objective),
        max(Fraction(peak, weight) for peak, weight in levels),
        sum(metrics.peak_quanta),
    )
