"""The ramps of an unrolled pattern, each solved as a problem of its own.

Unrolling leaves in the ramps what is left of the pattern there. While the first micro-batches are under way, and after
the last ones have set out, there is room for better; what lies between keeps the pattern.
"""

from __future__ import annotations

from threading import Event

from formulations.window import Window
from pipesched.errors import Deadlock
from pipesched.metrics import measure
from pipesched.schedule import Schedule
from pipesched.timeline import Timeline
from pipesched.validator import validate
from solver.best_times import best_times
from solver.limits import Limits
from solver.windows import placed_in, solve_window

# Beyond this many units CP-SAT finds nothing in a window in seconds.
_MOST_UNITS = 1_500


def better_ramps(timeline: Timeline, limits: Limits, seconds: float, stop: Event) -> Timeline:
    """The timeline with the best ramps found, in so many seconds each, or in the units of work of the limits."""
    for ramp in (ramp_up, ramp_down):
        placed = placed_in(timeline)
        window = Window(placed, *ramp(timeline), range(timeline.problem.devices))
        if sum(map(len, window.inside)) <= _MOST_UNITS and not stop.is_set():
            _, orders = solve_window(window, limits.seed, seconds, limits.deterministic, stop)
            if orders is not None:
                timeline = _better(timeline, placed.units.schedule(orders))
    return timeline


def _better(timeline: Timeline, schedule: Schedule) -> Timeline:
    """The schedule's timeline if it is better; units of no length may stand in an order that memory does not allow."""
    objective = timeline.problem.objective
    try:
        other = best_times(timeline.problem, schedule)
    except Deadlock:
        return timeline
    better = measure(other).value(objective) < measure(timeline).value(objective)
    return other if better and not validate(other) else timeline


def ramp_up(timeline: Timeline) -> tuple[int, int]:
    """From the start until the first micro-batch of every chain is through."""
    first = [held[0] if held else None for held in timeline.problem.microbatches_of]
    return 0, max(timeline.end(p) for p in timeline.schedule.passes() if p.microbatch == first[p.stage])


def ramp_down(timeline: Timeline) -> tuple[int, int]:
    """From when the last micro-batch of any chain sets out until the end."""
    last = [held[-1] if held else None for held in timeline.problem.microbatches_of]
    passes = list(timeline.schedule.passes())
    begin = min(timeline.start(p) for p in passes if p.microbatch == last[p.stage])
    return begin, max(map(timeline.end, passes)) + 1
