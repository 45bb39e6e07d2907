"""Looped BFS: all micro-batches forwards through one chunk, then the next, then all backwards; GPipe with chunks."""

from __future__ import annotations

from heuristics.building.requirements import equal_costs, round_robin
from heuristics.catalogue import HEURISTICS, ClosedForm, Heuristic, Parameter
from pipesched.problem.passes import BW, F, Pass
from pipesched.problem.problem import Problem
from pipesched.schedule.schedule import Schedule, schedule_of


def looped_bfs(problem: Problem, size: int | None = None) -> Schedule:
    """Return the order: chunks first to last forwards, then last to first full backwards, with micro-batches reversed.

    With `size` (None: all in one group), groups of that many micro-batches run one after the other, the last group with
    those left; sharded parameters are then gathered twice per stage for each group. Raises `DoesNotApply` unless stage
    s is on device s mod p.
    """
    round_robin(problem)
    m, orders = problem.microbatches, []
    for stages in problem.placement.stages_of:
        order_of_device: list[Pass] = []
        for begin in range(0, m, size or m):
            group = range(begin, min(m, begin + (size or m)))
            forwards = [Pass(F, stage, j) for stage in stages for j in group]
            order_of_device += forwards + [Pass(BW, stage, j) for _, stage, j in reversed(forwards)]
        orders.append(order_of_device)
    return schedule_of(orders, "looped-bfs")


def _closed_form(problem: Problem) -> ClosedForm | None:
    """Return makespan, span and peaks for equal stages if transfers take no time, else None.

    With fewer micro-batches than devices, each chunk waits for the first micro-batch to return. Raises `DoesNotApply`
    unless stage s is on device s mod p.
    """
    cost, p, m = equal_costs(problem), problem.devices, problem.microbatches
    if cost is None:
        return None
    v = round_robin(problem)
    makespan = ((v - 1) * max(m, p) + m + p - 1) * (cost.F + cost.BW)
    activation = problem.network.memory_in_flight
    peak = tuple(m * sum(activation[stage] for stage in stages) for stages in problem.placement.stages_of)
    return ClosedForm(makespan=makespan, span=makespan, peak=peak)


HEURISTICS.register(
    Heuristic(
        name="looped-bfs",
        reference="Lamy-Poirier, Breadth-First Pipeline, arXiv 2211.05953",
        needs="interleaved placement, any number of chunks v",
        bubble="(p-1)(F+BW) with F, BW of one chunk, if m >= p",
        peak="vm chunk activations",
        order=looped_bfs,
        closed_form=_closed_form,
        same_for_all_costs=True,
        parameter=Parameter("micro-batches of a group, one group after the other", looped_bfs),
    )
)
