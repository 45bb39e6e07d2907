"""ZB-H1 and ZB-H2: 1F1B with the backward split and weight passes deferred to fill the bubbles."""

from __future__ import annotations

from functools import partial

from heuristics.building.interleaved_walks import delayed_weights, lines
from heuristics.building.requirements import equal_costs, peaks_along, split_backward
from heuristics.catalogue import HEURISTICS, ClosedForm, Heuristic, Priorities
from pipesched.problem.problem import Problem
from pipesched.schedule.schedule import Schedule, schedule_of


def handcrafted(problem: Problem, name: str, depth: int) -> Schedule:
    """Return the order of ZB-H1 (`depth` 1) or ZB-H2 (`depth` 2).

    On the i-th stage (from 0), warm up with depth(p-1-i) forwards; then alternate F and B, with W following its B by
    depth*i micro-batches, so that every device has the same number of activations; then the backwards and weight passes
    left over. Raises `DoesNotApply` unless backwards split and there is one stage per device.
    """
    split_backward(problem)
    devices = lines(problem, lambda i: depth * (problem.devices - 1 - i))
    return schedule_of([delayed_weights(walk, depth * i) for i, walk in devices], name)


def _closed_form(problem: Problem, depth: int) -> ClosedForm | None:
    """Return spans and peaks of the paper's tables 1 and 2, for W <= F, B and enough micro-batches; else None.

    None also unless stages are equal and transfers take no time. Enough are those that fill the warm-up, of `depth`
    forwards for each later device. The makespan is given for ZB-H1 (`depth` 1) alone, peaks only where B takes no
    memory.
    """
    cost, p, m = equal_costs(problem), problem.devices, problem.microbatches
    network = problem.network
    if cost is None or min(cost.F, cost.B) < cost.W or m < depth * (p - 1) + 1:
        return None
    span = m * (cost.F + cost.B + cost.W) + (p - 1) * (cost.F + cost.B - depth * cost.W)
    before_b, after_b = network.memory_in_flight, network.memory_until_weight
    peak = peaks_along(problem, lambda i, s: (depth * (p - 1 - i) + 1) * before_b[s] + depth * i * after_b[s])
    # ZB-H2 leaves out the makespan: its devices start late and end late, which the span does not see.
    exact_peak = None if network.backward_takes_memory else peak
    return ClosedForm(makespan=span if depth == 1 else None, span=span, peak=exact_peak)


for _name, _depth, _bubble, _peak, _priorities in (
    (
        "zb-h1",
        1,
        "(p-1)(F+B-W) of makespan and span",
        "(p-i)·M_B + i·M_W on the i-th device, i from 0",
        Priorities(long_problems=1, plan=3),
    ),
    (
        "zb-h2",
        2,
        "(p-1)(F+B-2W) of span",
        "(2p-2i-1)·M_B + 2i·M_W on the i-th device, i from 0",
        Priorities(long_problems=0, high_memory=True),
    ),
):
    HEURISTICS.register(
        Heuristic(
            name=_name,
            reference="Qi et al., Zero Bubble, arXiv 2401.10241, section 2",
            needs="one stage a device; a backward that splits",
            bubble=f"{_bubble}, if W <= F, B",
            peak=_peak,
            order=partial(handcrafted, name=_name, depth=_depth),
            closed_form=partial(_closed_form, depth=_depth),
            same_for_all_costs=True,
            priorities=_priorities,
        )
    )
