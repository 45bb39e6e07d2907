"""Memory that holds whatever the durations turn out to be, as rows that are linear in order literals.

When a pass takes memory, what counts as held is all that may have been taken by then, less what is known to have been
given back: by passes that end before it in the order of a stream, along precedences, or by a wait between streams.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ortools.sat.python import cp_model

from formulations.tasks.jobs import Holding
from formulations.tasks.task_variables import TaskVariables
from formulations.variables.model_variables import Linear
from formulations.variables.order_literals import Truth, negation


def post_memory(model: TaskVariables, held: Callable[[Holding], int] = lambda _: 0) -> None:
    """A row for each pass that takes of a memory with a capacity.

    `held` is what passes that are not in the model hold when this one begins.
    """
    jobs = model.jobs
    for pool, room in enumerate(jobs.room):
        if room is None:
            continue
        here = [holding for holding in jobs.holdings if holding.pool == pool]
        takers = [holding for holding in here if holding.takes]
        givers = [holding for holding in here if holding.gives]
        for taker in takers:
            first = [other for other in takers if not other.again]
            taken = sum(other.takes * _may_come_first(model, other, taker) for other in first if other is not taker)
            given = sum(other.gives * _known_to_be_away(model, other, taker) for other in givers if other is not taker)
            own = 0 if taker.again else taker.takes
            _add(model, taker, held(taker) + own + taken - given, room)


def _add(model: TaskVariables, taker: Holding, level: Linear, room: int) -> None:
    """The row, where the pass runs."""
    runs = model.runs(taker.where)
    if isinstance(level, int):
        if level > room:
            model.never(runs)
        return
    row = model.cp.add(level <= room)
    if not isinstance(runs, bool):
        row.only_enforce_if(runs)


def known_to_end(model: TaskVariables, giver: Holding, taker: Holding) -> Truth:
    """Whether all of a pass has ended before another begins; a literal that holds is one the schedule waits for."""
    return _all_before(model, giver.last, taker.first, model.runs(giver.where))


def _known_to_be_away(model: TaskVariables, giver: Holding, taker: Holding) -> Truth:
    """Whether a pass has ended before another begins, and what it gave is not taken again before that one has begun."""
    ended = known_to_end(model, giver, taker)
    if giver.until is None or ended is False:
        return ended
    later = _all_before(model, taker.first[:1], (giver.until,), model.runs(taker.where))
    if ended is True or later is False:
        return later
    if later is True:
        return ended
    away = model.cp.new_bool_var("")
    model.cp.add_implication(away, ended)
    model.cp.add_implication(away, later)
    return away


def _may_come_first(model: TaskVariables, other: Holding, taker: Holding) -> Truth:
    """Whether the other pass may have taken its memory when this one does: it runs, and does not wait for this one.

    A pass that begins with several jobs at once has begun when the first of those listed has ended.
    """
    later = _all_before(model, taker.first[:1], other.first, model.runs(taker.where))
    # A literal is free where the other does not run, and then holds.
    return model.runs(other.where) if later is False else negation(later)


def _all_before(model: TaskVariables, ones: Sequence[int], others: Sequence[int], runs: Truth) -> Truth:
    """Whether `runs` and every one ends before each of the others starts: known, an order literal, or a new one."""
    pairs = [(x, y) for x in ones for y in others if not model.known.precedes(x, y)]
    if not pairs:
        return runs
    if any(x == y or model.known.precedes(y, x) or model.known.exclude(x, y) for x, y in pairs):
        return False
    if len(pairs) == 1 and runs is True and model.one_resource(*pairs[0]):
        return model.order.before(*pairs[0])
    literal = model.cp.new_bool_var("")
    if not isinstance(runs, bool):
        model.cp.add_implication(literal, runs)
    for x, y in pairs:
        row = model.cp.add(model.start[y] >= model.start[x] + model.jobs.jobs[x].steps)
        row.only_enforce_if(_both(literal, model.runs(y)))
        if model.one_resource(x, y):
            model.cp.add_implication(literal, model.order.before(x, y))
    return literal


def _both(literal: cp_model.IntVar, runs: Truth) -> list[Truth]:
    return [literal] if runs is True else [literal, runs]
