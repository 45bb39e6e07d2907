"""Memory that holds whatever the durations turn out to be, as rows that are linear in order literals.

A schedule keeps its memory under all durations if every unit that a pass takes comes from the stock or from a pass that
gives it back and that it waits for, no unit twice (a resource flow: Artigues, Michelon and Reusser 2003). Waits for
what has ended change no start, so starts have such a flow if and only if the memory is kept at every one of them: what
is there is handed out in the order of time. So of each pass that takes memory what has been taken by its start, less
what has been given back by then, is no more than there is; `schedule_of_starts` sets the waits.
"""

from __future__ import annotations

from collections.abc import Callable

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
            taken = sum(other.takes * _may_have_begun(model, other, taker) for other in takers if other is not taker)
            given = sum(other.gives * _has_ended(model, other, taker) for other in givers if other is not taker)
            _add(model, taker, held(taker) + taker.takes + taken - given, room)


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


def _has_ended(model: TaskVariables, giver: Holding, taker: Holding) -> Truth:
    """Whether all of a pass has ended before another begins: known, an order literal, or a new one that says so."""
    runs = model.runs(giver.where)
    pairs = [(x, y) for x in giver.last for y in taker.first if not model.known.precedes(x, y)]
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
        row = model.cp.add(model.start[y] >= model.end(x))
        row.only_enforce_if(_all_of(literal, model.runs(y)))
        if model.one_resource(x, y):
            model.cp.add_implication(literal, model.order.before(x, y))
    return literal


def _may_have_begun(model: TaskVariables, other: Holding, taker: Holding) -> Truth:
    """Whether the other pass, where it runs, has not surely taken its memory later than this one.

    A pass that begins with several jobs at once takes its memory with the first of them; that of the taker which is
    listed first stands for it.
    """
    known, runs, own = model.known, model.runs(other.where), taker.first[0]
    pairs = [(own, n) for n in other.first if not known.precedes(own, n)]
    if not pairs or any(known.exclude(*pair) for pair in pairs):
        return False
    if any(known.precedes(n, own) for _, n in pairs):
        return runs
    if len(pairs) == 1 and runs is True and model.one_resource(*pairs[0]):
        return negation(model.order.before(*pairs[0]))
    literal = model.cp.new_bool_var("")
    for x, y in pairs:
        later = _all_of(negation(literal), runs)
        if model.one_resource(x, y):
            model.cp.add_bool_or([model.order.before(x, y)]).only_enforce_if(later)
        else:
            model.cp.add(model.start[y] >= model.start[x] + 1).only_enforce_if(later)
    return literal


def _all_of(literal: Truth, runs: Truth) -> list[Truth]:
    return [literal] if runs is True else [literal, runs]
