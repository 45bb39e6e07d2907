"""Warm-up and cool-down of an unrolled pattern, each re-optimised by CP-SAT.

There unrolling leaves what remains of the pattern where micro-batches are missing, which is not optimal. The steady
state in between keeps the pattern.
"""

from __future__ import annotations

import time
from threading import Event

from formulations.window.window_model import Window
from pipesched.errors import Deadlock
from pipesched.schedule.rescale import value_of
from pipesched.schedule.schedule import Schedule
from pipesched.schedule.timeline import Timeline
from pipesched.validation.validator import validate
from solver.construction.timing import best_times
from solver.limits import Limits
from solver.local_search.window_lns import placed_in, solve_window

# Beyond this many units CP-SAT finds nothing in a window in seconds.
_MOST_UNITS = 1_500


def improve_warmup_cooldown(timeline: Timeline, limits: Limits, seconds: float, stop: Event) -> Timeline:
    """The timeline with the best warm-up and cool-down found, in so many seconds each or the limits' units of work."""
    for end_phase in (warm_up, cool_down):
        started = time.monotonic()
        placed = placed_in(timeline)
        window = Window(placed, *end_phase(timeline), range(timeline.problem.devices))
        if sum(map(len, window.inside)) <= _MOST_UNITS and not stop.is_set():
            # Stating the window of a long schedule takes seconds too.
            left = seconds - (time.monotonic() - started)
            _, schedule = solve_window(window, limits.seed, left, limits.deterministic, stop)
            if schedule is not None:
                timeline = _better(timeline, schedule)
    return timeline


def _better(timeline: Timeline, schedule: Schedule) -> Timeline:
    """The schedule's timeline if it is better; units of zero duration may be in an order that memory does not allow."""
    try:
        other = best_times(timeline.problem, schedule)
    except Deadlock:
        return timeline
    problem = timeline.problem
    better = value_of(problem, other) < value_of(problem, timeline)
    return other if better and not validate(other) else timeline


def warm_up(timeline: Timeline) -> tuple[int, int]:
    """From the start until the first micro-batch of every chain is through."""
    first = [held[0] if held else None for held in timeline.problem.microbatches_of]
    return 0, max(timeline.end(p) for p in timeline.schedule.passes() if p.microbatch == first[p.stage])


def cool_down(timeline: Timeline) -> tuple[int, int]:
    """From the first forward of the last micro-batch of any chain until the end."""
    last = [held[-1] if held else None for held in timeline.problem.microbatches_of]
    passes = list(timeline.schedule.passes())
    begin = min(timeline.start(p) for p in passes if p.microbatch == last[p.stage])
    return begin, max(map(timeline.end, passes)) + 1
