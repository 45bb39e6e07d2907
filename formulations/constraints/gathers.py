"""Constraint: a pass runs while its stage's parameters are gathered, and the number of gathers is within its limit."""

from __future__ import annotations

from formulations.constraints.catalogue import CONSTRAINTS, Constraint
from formulations.jobs.gathers import gathers_in_order
from formulations.jobs.jobs import Jobs
from formulations.variables.literals import negation
from formulations.variables.model_variables import Model
from pipesched.problem.passes import UNSHARD
from pipesched.schedule.gathered import gathered
from pipesched.schedule.timeline import Timeline


def check(timeline: Timeline) -> bool:
    """True if every pass lies between its stage's gather and release, and no more gathers run than the problem allows.

    The limit is on all gathers of an iteration together (`parameters.most`, None: unlimited).
    """
    problem, found = timeline.problem, gathered(timeline.problem, timeline.schedule)
    times = sum(p.kind is UNSHARD for p in timeline.schedule.passes())
    return (problem.parameters.most is None or times <= problem.parameters.most) and all(
        timeline.start(p) >= timeline.end(one.gather)
        and (one.release is None or timeline.end(p) <= timeline.start(one.release))
        for one in found
        for p in one.users
    )


def post(model: Model) -> None:
    """Post that each pass ends before a release of its parameters, or starts after the gather that follows the release.

    Gathers beyond the required ones, which may be left out, are used in order of their numbers, and at most
    `Jobs.most_further_gathers` of them in all.
    """
    operation_of, cp = model.operations.of, model.cp
    for gap in model.jobs.gaps:
        release, gather = operation_of[gap.release], operation_of[gap.gather]
        for first, last in gap.users:
            where = model.where_jobs(gap.release, first[0])
            before = model.before(operation_of[first[0]], release) if first == last and len(first) == 1 else None
            before = cp.new_bool_var("") if before is None else before
            for n in last if before is not False else ():
                cp.add(model.start[release] >= model.end(operation_of[n])).only_enforce_if([before, *where])
            if before is True:
                continue
            after = [negation(before), *where]
            for n in first:
                cp.add(model.start[operation_of[n]] >= model.end(gather)).only_enforce_if(after)
            for again in model.where_jobs(gap.gather):
                cp.add_bool_or([again]).only_enforce_if(after)
    for one, other in gathers_in_order(model.jobs):
        cp.add_implication(model.chosen[other][1], model.chosen[one][1])
    gathers = [model.chosen[n][1] for n, choice in enumerate(model.jobs.choices) if choice.gathers]
    if model.jobs.most_further_gathers is not None:
        cp.add(sum(gathers) <= model.jobs.most_further_gathers)


CONSTRAINTS.register(Constraint("gathers", check, post, posted_if=Jobs.have_gathers))
