"""Interleaved zero bubble: interleaved 1F1B with the backward split and weight passes deferred to fill bubbles."""

from __future__ import annotations

from heuristics.building.interleaved_walks import delayed_weights, even_groups, walks
from heuristics.building.requirements import equal_costs, round_robin, split_backward
from heuristics.catalogue import HEURISTICS, ClosedForm, Heuristic
from pipesched.problem.problem import Problem
from pipesched.schedule.schedule import Schedule, schedule_of


def interleaved_zero_bubble(problem: Problem) -> Schedule:
    """Return ZB-H1's order on several chunks: on device d, each W follows its B by d backwards.

    With groups of n micro-batches (n = p where p divides m), device d warms up with p-1-d + (v-1)n forwards: half the
    hops of interleaved 1F1B, since a gradient is sent before its W is done. Raises `DoesNotApply` unless backwards
    split and stage s is on device s mod p.
    """
    split_backward(problem)
    devices = walks(problem, even_groups(problem), hop=1)
    return schedule_of([delayed_weights(walk, d) for d, walk in enumerate(devices)], "interleaved-zb")


def _closed_form(problem: Problem) -> ClosedForm | None:
    cost, p, m = equal_costs(problem), problem.devices, problem.microbatches
    if cost is None or m % p or not problem.pipeline.splits or min(cost.F, cost.B) < cost.W:
        return None
    v, network = round_robin(problem), problem.network
    span = m * v * (cost.F + cost.B + cost.W) + (p - 1) * (cost.F + cost.B - cost.W)
    alike = len({*zip(network.memory_in_flight, network.memory_until_weight, strict=True)}) == 1
    alike = alike and not network.backward_takes_memory
    before_b, after_b = network.memory_in_flight[0], network.memory_until_weight[0]
    peak = tuple((v * p - d) * before_b + d * after_b for d in range(p)) if alike else None
    return ClosedForm(makespan=span, span=span, peak=peak)


HEURISTICS.register(
    Heuristic(
        name="interleaved-zb",
        reference="PyTorch ScheduleInterleavedZeroBubble, after Qi et al., Zero Bubble, arXiv 2401.10241, ZB-H1",
        needs="interleaved placement, any number of chunks v; a backward that splits",
        bubble="(p-1)(F+B-W) with F, B, W of one chunk, if p divides m and W <= F, B",
        peak="(vp-d)·M_B + d·M_W of one chunk on device d, if p divides m",
        order=interleaved_zero_bubble,
        closed_form=_closed_form,
    )
)
