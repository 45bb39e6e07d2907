"""1F1B: after a warm-up, every device alternates one forward and one backward."""

from __future__ import annotations

from heuristics.building.interleaved_walks import lines, one_forward_one_backward
from heuristics.building.requirements import equal_costs, peaks_along
from heuristics.catalogue import HEURISTICS, ClosedForm, Heuristic, Priorities
from pipesched.problem.problem import Problem
from pipesched.schedule.schedule import Schedule


def one_f_one_b(problem: Problem) -> Schedule:
    """Return 1F1B: p-1-i warm-up forwards on the i-th stage (from 0; at most m), then alternation, then full backwards.

    Raises `DoesNotApply` unless there is one stage per device.
    """
    devices = lines(problem, lambda i: problem.devices - 1 - i)
    return Schedule(tuple(tuple(one_forward_one_backward(walk)) for _, walk in devices), "1f1b")


def _closed_form(problem: Problem) -> ClosedForm | None:
    cost, p, m = equal_costs(problem), problem.devices, problem.microbatches
    if cost is None:
        return None
    makespan = (m + p - 1) * (cost.F + cost.BW)
    peak = peaks_along(problem, lambda i, stage: min(m, p - i) * problem.network.memory_in_flight[stage])
    return ClosedForm(makespan=makespan, span=makespan, peak=peak)


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
        priorities=Priorities(plan=0),
    )
)
