"""ZBV as PyTorch and torchtitan run it (`ZBVZeroBubble`), and Primus (`zbv-formatted`): a fixed pattern of passes.

The paper's ZBV (arXiv 2401.10241, section 6; here `zbv`) is found by a search over the times. PyTorch's is one pattern
for all times, made for F = B = W and at least 2p - 1 micro-batches: with fewer it is the order of 2p - 1, without the
passes of missing micro-batches.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from heuristics.building.requirements import chunk_peaks, equal_costs, split_backward, v_of_stages
from heuristics.catalogue import HEURISTICS, ClosedForm, Heuristic
from pipesched.problem.passes import B, F, Pass, PassKind, W
from pipesched.problem.problem import Problem
from pipesched.problem.quantities import DeviceId
from pipesched.schedule.schedule import Schedule, schedule_of


def torch_zbv(problem: Problem) -> Schedule:
    """Return PyTorch's order; device d has stage d, on the V's leg down, and stage 2p-1-d, on the leg up.

    Raises `DoesNotApply` unless backwards split and the stages are placed so.
    """
    split_backward(problem)
    p, m = v_of_stages(problem), problem.microbatches
    rows = (_row(p, device, max(m, 2 * p - 1)) for device in range(p))
    return schedule_of(([q for q in row if q.microbatch < m] for row in rows), "torch-zbv")


def _row(p: int, device: DeviceId, m: int) -> Iterator[Pass]:
    """Yield all passes of a device in order; those of each kind and stage take the micro-batches 0..m-1 in turn."""
    down, up = device, 2 * p - 1 - device
    ran: Counter[tuple[PassKind, int]] = Counter()

    def then(kind: PassKind, stage: int) -> Pass:
        ran[kind, stage] += 1
        return Pass(kind, stage, ran[kind, stage] - 1)

    for _ in range(2 * (p - device) - 1):
        yield then(F, down)
    for _ in range(device):
        yield then(F, up)
        yield then(F, down)
    for _ in range(p - device):
        yield from (then(kind, up) for kind in (F, B, W))
    while ran[F, up] < m:
        if ran[F, down] < m:
            yield then(F, down)
        yield from (then(kind, down) for kind in (B, W))
        yield from (then(kind, up) for kind in (F, B, W))
    # From here on weight passes wait: first for the gradients of all devices, then for those of the stages up.
    for _ in range(device):
        yield from (then(B, stage) for stage in (down, up))
    for _ in range(p - device):
        yield from (then(kind, down) for kind in (B, W))
    for stage in (up, down):
        while ran[W, stage] < m:
            yield then(W, stage)


def _closed_form(problem: Problem) -> ClosedForm | None:
    """Return peaks of equal stages if m >= 2p - 1, and for F = B = W makespan and span, which has no idle time.

    None otherwise, and also where transfers take time, or B frees part of an activation.
    """
    cost, p, m = equal_costs(problem), problem.devices, problem.microbatches
    if cost is None or m < 2 * p - 1 or any(problem.network.freed_by_backward):
        return None
    peak = chunk_peaks(problem, (2 * p,) * p)
    if not cost.F == cost.B == cost.W:
        return ClosedForm(peak=peak)
    return ClosedForm(makespan=(6 * m + p - 1) * cost.F, span=6 * m * cost.F, peak=peak)


HEURISTICS.register(
    Heuristic(
        name="torch-zbv",
        reference="PyTorch, torch.distributed.pipelining, ScheduleZBVZeroBubble; Primus, zbv-formatted",
        needs="v-shape placement; a backward that splits",
        bubble="0 of span, (p-1)F of makespan, if F = B = W and m >= 2p - 1",
        peak="2p chunk activations",
        order=torch_zbv,
        closed_form=_closed_form,
        same_for_all_costs=True,
    )
)
