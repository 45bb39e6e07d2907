"""1F1B: after a warm-up, every device alternates one forward and one backward."""

from __future__ import annotations

from heuristics.building.requirements import equal_costs, one_stage_a_device
from heuristics.catalogue import HEURISTICS, ClosedForm, Heuristic, Standing
from pipesched.problem.passes import BW, F, Pass
from pipesched.problem.problem import Problem
from pipesched.schedule.schedule import Schedule, schedule_of


def one_f_one_b(problem: Problem) -> Schedule:
    """Warm-up of p-1-i forwards on the i-th stage (fewer if m is small), then 1F1B, then the backwards left over."""
    chain = one_stage_a_device(problem)
    m, p = problem.microbatches, problem.devices
    orders: list[list[Pass]] = [[] for _ in range(p)]
    for i, stage in enumerate(chain):
        warm_up = min(m, p - 1 - i)
        order = [Pass(F, stage, j) for j in range(warm_up)]
        for j in range(m - warm_up):  # steady
            order += [Pass(F, stage, j + warm_up), Pass(BW, stage, j)]
        order += [Pass(BW, stage, j) for j in range(m - warm_up, m)]  # cool-down
        orders[problem.placement.stage_device[stage]] = order
    return schedule_of(orders, "1f1b")


def _closed_form(problem: Problem) -> ClosedForm | None:
    cost, p, m = equal_costs(problem), problem.devices, problem.microbatches
    if cost is None:
        return None
    makespan = (m + p - 1) * (cost.F + cost.BW)
    peak = [0] * p
    for i, stage in enumerate(problem.placement.chains[0]):
        peak[problem.placement.stage_device[stage]] = min(m, p - i) * problem.network.held_in_flight[stage]
    return ClosedForm(makespan=makespan, span=makespan, peak=tuple(peak))


HEURISTICS.register(
    Heuristic(
        name="1f1b",
        reference="Narayanan et al., PipeDream, arXiv 1806.03377; Fan et al., DAPPLE, arXiv 2007.01045",
        needs="one stage a device",
        bubble="(p-1)(F+BW)",
        peak="min(m, p-i) on the i-th device, i from 0",
        order=one_f_one_b,
        closed_form=_closed_form,
        same_for_all_costs=True,
        standing=Standing(plan=0),
    )
)
