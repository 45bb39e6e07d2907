"""Constraint: a task starts after all its predecessors have ended and their tensors have arrived."""

from __future__ import annotations

from formulations.constraints.catalogue import CONSTRAINTS, Constraint
from formulations.variables.model_variables import Model
from pipesched.deadline import SHORT, asking
from pipesched.schedule.timeline import Timeline


def check(timeline: Timeline) -> bool:
    """True if each pass starts at least the lag, such as a transfer, after the end of each of its predecessors."""
    network, passes = timeline.problem.network, timeline.schedule.pass_set
    return all(
        timeline.start(p) >= timeline.end(before) + lag
        for p in timeline.schedule.passes()
        for before, lag in network.predecessors(p, passes)
    )


def post(model: Model) -> None:
    """Post that each operation starts at least the lag after the end of each predecessor, where both run.

    If one operation stands for two modes, and both wait, the row needs no condition.
    """
    for before, after, lag, jobs, whole in asking(model.operations.arcs, SHORT):
        later = model.start[after] >= model.end(before) + lag
        for where in [model.where(before, after)] if whole else [model.where_jobs(*pair) for pair in jobs]:
            model.cp.add(later).only_enforce_if(where)


CONSTRAINTS.register(Constraint("precedence", check, post))
