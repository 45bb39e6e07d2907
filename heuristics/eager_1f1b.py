"""Eager 1F1B: twice the warm-up of 1F1B, so that a transfer has the time of a pass to travel while devices compute."""

from __future__ import annotations

from heuristics.building.interleaved_walks import lines, one_forward_one_backward
from heuristics.building.requirements import equal_costs, peaks_along
from heuristics.catalogue import HEURISTICS, ClosedForm, Heuristic
from pipesched.problem.problem import Problem
from pipesched.schedule.schedule import Schedule


def eager_1f1b(problem: Problem) -> Schedule:
    """Return 1F1B with a warm-up of 2(p-1-i) forwards on the i-th stage (from 0; at most m), and full backwards.

    A stage runs the forward that its successor needs two passes before the successor does, not one: the activation
    travels meanwhile. Raises `DoesNotApply` unless there is one stage per device.
    """
    devices = lines(problem, lambda i: 2 * (problem.devices - 1 - i))
    return Schedule(tuple(tuple(one_forward_one_backward(walk)) for _, walk in devices), "eager-1f1b")


def _closed_form(problem: Problem) -> ClosedForm | None:
    cost, p, m = equal_costs(problem), problem.devices, problem.microbatches
    if cost is None:
        return None
    makespan = (m + p - 1) * (cost.F + cost.BW)
    peak = peaks_along(problem, lambda i, stage: min(m, 2 * (p - 1 - i) + 1) * problem.network.memory_in_flight[stage])
    return ClosedForm(makespan=makespan, span=makespan, peak=peak)


HEURISTICS.register(
    Heuristic(
        name="eager-1f1b",
        reference="Zhuang et al., On Optimizing the Communication of Model Parallelism, arXiv 2211.05322 (Alpa)",
        needs="one stage a device",
        bubble="(p-1)(F+BW)",
        peak="min(m, 2(p-1-i) + 1) on the i-th device, i from 0",
        order=eager_1f1b,
        closed_form=_closed_form,
        same_for_all_costs=True,
    )
)
