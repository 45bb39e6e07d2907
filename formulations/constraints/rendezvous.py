"""Constraint: a task that receives and the one that sends to it start together, where a transfer occupies both."""

from __future__ import annotations

from formulations.constraints.catalogue import CONSTRAINTS, Constraint
from formulations.variables.model_variables import Model
from pipesched.deadline import SHORT, asking
from pipesched.problem.passes import Pass, Task
from pipesched.schedule.timeline import Timeline


def check(timeline: Timeline) -> bool:
    """Plain reading of the network's meetings."""
    starts = timeline.starts
    return all(
        starts[Task(p, receive.part)] == starts[Task(sender, send.part)]
        for receive, sends in timeline.problem.network.meetings
        for p in timeline.schedule.passes()
        if (p.kind, p.stage) == receive.pass_type
        for send in sends
        if (sender := Pass(send.kind, send.stage, p.microbatch)) in timeline.schedule.pass_set
    )


def post(model: Model) -> None:
    """Equal starts where both run."""
    of = model.operations.of
    for receiver, sender in asking(model.jobs.meetings, SHORT):
        together = model.start[of[receiver]] == model.start[of[sender]]
        model.cp.add(together).only_enforce_if(model.where_jobs(receiver, sender))


CONSTRAINTS.register(Constraint("rendezvous", check, post))
