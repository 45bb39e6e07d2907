"""Interleaved 1F1B (VPP): each device has several chunks, and groups of p micro-batches run through them in turn."""

from __future__ import annotations

from heuristics.building.interleaved_walks import even_groups, groups_of, one_forward_one_backward, walks
from heuristics.building.requirements import chunk_peaks, equal_costs, round_robin
from heuristics.catalogue import HEURISTICS, ClosedForm, Heuristic, Parameter, Priorities
from pipesched.problem.problem import Problem
from pipesched.schedule.schedule import Schedule


def interleaved_1f1b(problem: Problem, group: int | None = None) -> Schedule:
    """Return Megatron's order for v chunks and m micro-batches, any numbers, with full backwards; v = 1 is 1F1B.

    With groups of n micro-batches (n = p where p divides m), device d warms up with 2(p-1-d) + (v-1)n forwards (v = 1:
    p-1-d), then alternates forwards and backwards. `group` is n, Megatron's microbatch_group_size_per_vp_stage: larger
    groups hide transfers and need more memory; None: m // p groups, as equal as possible. Raises `DoesNotApply` unless
    stage s is on device s mod p, and groups of micro-batches are possible.
    """
    hop = 2 if round_robin(problem) > 1 else 1
    groups = even_groups(problem) if group is None else groups_of(problem, group)
    orders = [one_forward_one_backward(walk) for walk in walks(problem, groups, hop)]
    return Schedule(tuple(map(tuple, orders)), "interleaved-1f1b")


def _closed_form(problem: Problem) -> ClosedForm | None:
    cost, p, m = equal_costs(problem), problem.devices, problem.microbatches
    if cost is None or m % p:
        return None
    v = round_robin(problem)
    makespan = (m * v + p - 1) * (cost.F + cost.BW)
    hop = 2 if v > 1 else 1
    peak = chunk_peaks(problem, [hop * (p - 1 - d) + (v - 1) * p + 1 for d in range(p)])
    return ClosedForm(makespan=makespan, span=makespan, peak=peak)


HEURISTICS.register(
    Heuristic(
        name="interleaved-1f1b",
        reference="Narayanan et al., Megatron-LM, arXiv 2104.04473, section 2.2",
        needs="interleaved placement, any number of chunks v",
        bubble="(p-1)(F+BW) with F, BW of one chunk, if p divides m",
        peak="2(p-1-d) + (v-1)p + 1 chunk activations on device d (v > 1, p divides m)",
        order=interleaved_1f1b,
        closed_form=_closed_form,
        same_for_all_costs=True,
        priorities=Priorities(plan=1),
        parameter=Parameter("micro-batches that run through a chunk together", interleaved_1f1b),
    )
)
