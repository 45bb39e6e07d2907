"""Generalised interleaved 1F1B: groups of fewer than p micro-batches, down to p/2, with about half the activations."""

from __future__ import annotations

from heuristics.building.interleaved_walks import delayed_weights, one_forward_one_backward, walks
from heuristics.building.requirements import chunk_peaks, equal_costs, round_robin
from heuristics.catalogue import HEURISTICS, ClosedForm, Heuristic, Parameter
from pipesched.deadline import asking
from pipesched.errors import DoesNotApply
from pipesched.problem.passes import F, Pass, PassKind
from pipesched.problem.problem import Problem
from pipesched.problem.quantities import Ticks
from pipesched.schedule.schedule import Schedule, schedule_of


def generalised_interleaved(problem: Problem, group: int | None = None) -> Schedule:
    """Return the order with groups of g: device d warms up with p-1-d + (v-1)g forwards, then alternates F, B and W.

    Where backwards do not split it alternates F and BW. `group` is g, by default `default_group`. Any g from p/2 (half
    the memory of interleaved 1F1B) to p (the shorter warm-up) runs free of deadlock. A last group of fewer than g keeps
    the order that it has in a full one. Raises `DoesNotApply` for any other g, and unless stage s is on device s mod p.
    """
    round_robin(problem)
    p, m = problem.devices, problem.microbatches
    g = default_group(problem) if group is None else group
    if not -(-p // 2) <= g <= p:
        raise DoesNotApply(f"needs groups of {-(-p // 2)} to {p} micro-batches (p/2 to p); found {g}")
    groups = [range(first, first + g) for first in range(0, m, g)]
    orders: list[list[Pass]] = []
    for walk in asking(walks(problem, groups, hop=1)):
        fused = [x for slot in one_forward_one_backward(walk) for x in slot]
        order = delayed_weights(walk, 0) if problem.pipeline.splits else fused
        orders.append([x for x in order if x.microbatch < m])
    return schedule_of(orders, "generalised-interleaved")


def default_group(problem: Problem) -> int:
    """Return the least group size from p/2 (rounded up) to p with which no device waits in the steady state.

    It is p if none is smaller. A group's work on a chunk must cover the time of a micro-batch over p stages, forwards
    or backwards. The authors' code makes this choice; it also ignores transfers.
    """
    p, kinds = problem.devices, (F, *problem.network.backwards[0])

    def ticks(kind: PassKind, stage: int) -> Ticks:
        return problem.duration(Pass(kind, stage, 0))

    stages = range(problem.placement.stages)
    work = max(sum(ticks(kind, stage) for kind in kinds) for stage in stages)
    around = max(
        sum(ticks(kind, stage) for stage in stages[first : first + p])
        for kind in kinds[:2]  # forward, and the backward that sends the gradient
        for first in stages[::p]
    )
    return next((g for g in range(-(-p // 2), p) if g * work >= around), p)


def _closed_form(problem: Problem) -> ClosedForm | None:
    cost, p, m = equal_costs(problem), problem.devices, problem.microbatches
    if cost is None:
        return None
    v, g, split = round_robin(problem), default_group(problem), problem.pipeline.splits
    f, b, w = (cost.F, cost.B, cost.W) if split else (cost.F, cost.BW, 0)
    if m % g or g * (f + b + w) < p * max(f, b) or w > f + b:
        return None
    around = (p - g) * f + max(0, p * b - g * (b + w))
    span = m * v * (f + b + w) + (p - 1) * (f + b) + (v - 1) * around
    known = not split or not problem.network.backward_takes_memory
    peak = chunk_peaks(problem, [(v - 1) * g + p - d for d in range(p)]) if known else None
    return ClosedForm(makespan=span, span=span, peak=peak)


HEURISTICS.register(
    Heuristic(
        name="generalised-interleaved",
        reference="Wan et al., PipeOffload, arXiv 2503.01328, generalised interleaved schedule",
        needs="interleaved placement, any number of chunks v",
        bubble="(p-1)(F+B) + (v-1)((p-g)F + max(0, pB-g(B+W))) with F, B, W of one chunk (unsplit: B is BW, W 0), "
        "if g divides m, g(F+B+W) >= pF, pB and W <= F+B; g is the least such number from p/2 on",
        peak="(v-1)g + p-d chunk activations on device d (g divides m)",
        order=generalised_interleaved,
        closed_form=_closed_form,
        ceiling=lambda p, v: v * p,
        parameter=Parameter("micro-batches that run through a chunk together", generalised_interleaved),
    )
)
