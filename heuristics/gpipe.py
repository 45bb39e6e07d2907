"""GPipe: all forwards, then all backwards."""

from __future__ import annotations

from heuristics.building.requirements import equal_costs, one_stage_a_device
from heuristics.catalogue import HEURISTICS, ClosedForm, Heuristic, Priorities
from pipesched.problem.passes import BW, F, Pass
from pipesched.problem.problem import Problem
from pipesched.schedule.schedule import Schedule, schedule_of


def gpipe(problem: Problem) -> Schedule:
    """Return GPipe's order: forwards 0..m-1, then full backwards m-1..0, as in figure 2c of the paper.

    Raises `DoesNotApply` unless there is one stage per device.
    """
    one_stage_a_device(problem)
    m = problem.microbatches
    orders = []
    for (stage,) in problem.placement.stages_of:
        forwards = [Pass(F, stage, j) for j in range(m)]
        backwards = [Pass(BW, stage, j) for j in reversed(range(m))]
        orders.append([*forwards, *backwards])
    return schedule_of(orders, "gpipe")


def _closed_form(problem: Problem) -> ClosedForm | None:
    cost, p, m = equal_costs(problem), problem.devices, problem.microbatches
    if cost is None:
        return None
    makespan = (m + p - 1) * (cost.F + cost.BW)
    peak = tuple(m * problem.network.memory_in_flight[stage] for (stage,) in problem.placement.stages_of)
    return ClosedForm(makespan=makespan, span=makespan, peak=peak)


HEURISTICS.register(
    Heuristic(
        name="gpipe",
        reference="Huang et al., GPipe, arXiv 1811.06965",
        needs="one stage a device",
        bubble="(p-1)(F+BW)",
        peak="m",
        order=gpipe,
        closed_form=_closed_form,
        same_for_all_costs=True,
        priorities=Priorities(plan=4),
    )
)
