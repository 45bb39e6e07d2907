"""1F1B with overlap: a steady forward and backward share a slot; one communicates while the other computes.

Where passes are several tasks, the two of a slot interleave layer by layer: combine B, attention F, experts B, dispatch
F, dispatch B, experts W, experts F, attention B, attention W, combine F (DeepSeek-V3's published trace of a pair).
Megatron-Core runs the same order, with the last attention W after the transfer of the gradient, and lets both passes of
a pair end before the next one begins (core/models/common/model_chunk_schedule_plan.py).
"""

from __future__ import annotations

from functools import partial

from heuristics.building.copies_with_slots import with_copies
from heuristics.building.interleaved_walks import even_groups, lines, one_forward_one_backward, walks
from heuristics.building.requirements import chunk_peaks, equal_costs
from heuristics.building.shared_streams import shared_streams_by_start, without_sharing
from heuristics.building.task_interleaving import Weights, interleaved
from heuristics.catalogue import HEURISTICS, ClosedForm, Heuristic
from pipesched.deadline import SHORT, asking
from pipesched.problem.passes import BW, B, Slot, W
from pipesched.problem.problem import Problem
from pipesched.problem.quantities import MemorySteps
from pipesched.schedule.schedule import Schedule


def overlapped_1f1b(problem: Problem) -> Schedule:
    """Return 1F1B in slots of a forward and a backward: the i-th device warms up with 2(p-1-i) + 1 forwards.

    With one more forward, the two passes of a slot belong to different micro-batches even on the last device. The
    difference between neighbours is two, not one: a slot hands its forward down and its backward up at its end, so
    neighbours one apart would wait for each other every other slot. Raises `DoesNotApply` unless there is one stage per
    device.
    """
    devices = lines(problem, lambda i: 2 * (problem.devices - 1 - i) + 1)
    orders = tuple(tuple(one_forward_one_backward(walk, paired=True)) for _, walk in devices)
    return interleaved(problem, Schedule(orders, "1f1b-overlap"))


def overlapped_interleaved(problem: Problem, name: str, cut_weights: bool = False, offload: bool = False) -> Schedule:
    """Return interleaved 1F1B with one more warm-up forward, in paired slots (a forward with a backward).

    `offload` copies activations to the host and back during the slots. `cut_weights` splits the backwards of the
    cool-down, which have no forward to overlap with: the gradient is sent before W runs (where the backward splits at
    all). If passes are several tasks, all weight tasks of a pair then run after its backward, while the gradient
    travels. Raises `DoesNotApply` unless stage s is on device s mod p and, with `offload`, every activation may be
    offloaded.
    """
    devices = walks(problem, even_groups(problem), hop=2, extra=1)
    orders = [one_forward_one_backward(walk, paired=True) for walk in devices]
    own = problem
    if offload:
        orders, own = with_copies(problem, orders), without_sharing(problem)
    if cut_weights and problem.pipeline.splits:
        orders = [[part for slot in asking(order, SHORT) for part in _cut(slot)] for order in orders]
    schedule = Schedule(tuple(map(tuple, orders)), name)
    weights = Weights.LAST if cut_weights else Weights.AFTER_THEIR_TASK
    return shared_streams_by_start(problem, interleaved(own, schedule, weights, pairs_end_together=not cut_weights))


def _cut(slot: Slot) -> list[Slot]:
    """Return a full backward that is alone in its slot as two slots, B and W; any other slot unchanged."""
    if slot[0].kind is not BW:
        return [slot]
    return [(slot[0]._replace(kind=B),), (slot[0]._replace(kind=W),)]


def overlapped_closed_form(problem: Problem, cut_weights: bool = False) -> ClosedForm | None:
    """Return makespan, span and peaks: on the last device, blocks between p(v-1) + 1 forwards and as many backwards.

    None unless stages are equal, blocks are equal and none is shorter than its passes, and, with several chunks or with
    `cut_weights`, p divides the micro-batches. With `cut_weights` the gradient of the last block passes the first
    device after its W and the others before it; this holds only if blocks are no shorter than B+2W, since each device
    has two backwards more left than the one after it.
    """
    cost, p, v = equal_costs(problem), problem.devices, problem.placement.stages // problem.devices
    blocks = {*problem.pipeline.blocks.values()}
    cut = cut_weights and problem.pipeline.splits
    if cost is None or len(blocks) > 1 or ((v > 1 or cut) and problem.microbatches % p):
        return None
    block = min(blocks, default=cost.F + cost.BW)
    backward, gradient = (cost.B + cost.W, cost.B) if cut else (cost.BW, cost.BW)
    if block < max(cost.F, cost.BW, 2 * backward - gradient):
        return None
    warm_up, turns = p * (v - 1) + 1, v * problem.microbatches
    up = backward + (p - 2) * gradient if p > 1 else 0
    makespan = (p - 1) * cost.F + warm_up * (cost.F + backward) + (turns - warm_up) * block + up
    return ClosedForm(makespan=makespan, span=makespan, peak=_peaks(problem, v, cut))


def _peaks(problem: Problem, v: int, cut: bool) -> tuple[MemorySteps, ...] | None:
    """Return each device's peak memory: its warm-up forwards, and the forward overlapped with the first backward.

    `v` is the number of chunks. None where backwards are split in the cool-down (`cut`) and B takes memory.
    """
    if cut and problem.network.backward_takes_memory:
        return None
    device, p = problem.placement.stage_device, problem.devices
    chunks = {
        device[stage]: 2 * (p - 1 - i) + p * (v - 1) + 2 for i, stage in enumerate(problem.placement.chains[0][:p])
    }
    return chunk_peaks(problem, [chunks[d] for d in range(p)])


_BUBBLE = "(p-1)(F+BW) with F, BW of one chunk, and (p(v-1)+1)(F+BW - F&BW) not overlapped, if F&BW >= F, BW"
HEURISTICS.register(
    Heuristic(
        name="1f1b-overlap",
        reference="1F1B with DeepSeek-V3's overlapped blocks (arXiv 2412.19437) instead of DualPipe's two directions",
        needs="one stage a device",
        bubble=f"{_BUBBLE}; v = 1",
        peak="min(m, 2(p-1-i) + 2) on the i-th device, i from 0",
        order=overlapped_1f1b,
        closed_form=overlapped_closed_form,
        same_for_all_costs=True,
    )
)
HEURISTICS.register(
    Heuristic(
        name="interleaved-1f1b-overlap",
        reference="Megatron-Core, overlap_moe_expert_parallel_comm, after arXiv 2104.04473, section 2.2",
        needs="interleaved placement, any number of chunks v",
        bubble=f"{_BUBBLE} and p divides m",
        peak="2(p-1-d) + (v-1)p + 2 chunk activations on device d (p divides m)",
        order=partial(overlapped_interleaved, name="interleaved-1f1b-overlap"),
        closed_form=overlapped_closed_form,
        same_for_all_costs=True,
    )
)
