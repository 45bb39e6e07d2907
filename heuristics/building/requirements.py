"""Applicability checks of published schedules; each raises `DoesNotApply` with a reason in one line."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from pipesched.errors import DoesNotApply
from pipesched.problem.passes import BW, B, F, Pass, W
from pipesched.problem.placement import bidirectional, v_shape
from pipesched.problem.problem import Problem
from pipesched.problem.quantities import MemorySteps, StageId, Ticks


def one_stage_a_device(problem: Problem) -> tuple[StageId, ...]:
    """Require one stage per device, else `DoesNotApply`; return the stages in the order of the pipeline."""
    placement = problem.placement
    if len(placement.chains) != 1 or placement.stages != placement.devices:
        raise DoesNotApply(f"needs one stage on each device; the placement is {placement.name}")
    return placement.chains[0]


def split_backward(problem: Problem) -> None:
    """Require that the backward can run as B and W, else `DoesNotApply`."""
    if not problem.pipeline.splits:
        raise DoesNotApply("needs a backward that splits into B and W: give times.weight")


def all_may_offload(problem: Problem) -> None:
    """Require that every activation may be offloaded, else `DoesNotApply`."""
    if not all(stage.offload for stage in problem.stages):
        raise DoesNotApply("needs offload on every stage: give memory.offload")


def round_robin(problem: Problem) -> int:
    """Require stage s on device s mod p and no linear placement, else `DoesNotApply`; return the chunks per device."""
    placement = problem.placement
    if placement.name == "linear":
        raise DoesNotApply("needs several stages a device (placement: interleaved); with one it is 1f1b")
    expected = tuple(s % placement.devices for s in range(placement.stages))
    if len(placement.chains) != 1 or placement.stage_device != expected or placement.stages % placement.devices:
        raise DoesNotApply(f"needs stage s on device s mod p (placement: interleaved); it is {placement.name}")
    return placement.stages // placement.devices


def v_of_stages(problem: Problem) -> int:
    """Require stages d and 2p-1-d on device d, else `DoesNotApply`; return the number of devices p."""
    placement = problem.placement
    if len(placement.chains) != 1 or placement.stage_device != v_shape(placement.devices).stage_device:
        raise DoesNotApply(f"needs stages d and 2p-1-d on device d (placement: v-shape); it is {placement.name}")
    return placement.devices


def two_directions(problem: Problem) -> int:
    """Require every stage on two devices, one chain in each direction; return the even number of devices.

    Else `DoesNotApply`.
    """
    placement, whole = problem.placement, bidirectional(problem.devices)
    if (placement.chains, placement.stage_device) != (whole.chains, whole.stage_device):
        raise DoesNotApply(f"needs every stage on two devices (placement: bidirectional); it is {placement.name}")
    if problem.chain_arcs.arcs:
        raise DoesNotApply("needs two chains of which none feeds the other")
    if placement.devices % 2:
        raise DoesNotApply(f"needs an even number of devices; found {placement.devices}")
    return placement.devices


class EqualCosts(NamedTuple):
    """Durations in ticks of a stage's passes, in a problem whose stages are all equal and whose transfers take no time.

    Where backwards do not split, B is the full backward and W 0. BW is the full backward.
    """

    F: Ticks
    B: Ticks
    W: Ticks
    BW: Ticks


def equal_costs(problem: Problem) -> EqualCosts | None:
    """Return the durations of passes if stages and micro-batches are equal and transfers take no time, else None.

    Closed forms assume this. On one device transfers do not count.
    """
    if problem.walks.scale:
        return None
    stages = range(problem.placement.stages)
    kinds = (F, B, W, BW) if problem.pipeline.splits else (F, BW)
    per_kind = {kind: {problem.duration(Pass(kind, s, 0)) for s in stages} for kind in kinds}
    if any(len(durations) != 1 for durations in per_kind.values()):
        return None
    if problem.devices > 1 and (any(stage.transfer for stage in problem.stages) or any(map(any, problem.links))):
        return None
    f, bw = (min(per_kind[kind]) for kind in (F, BW))
    b, w = (min(per_kind[kind]) for kind in (B, W)) if problem.pipeline.splits else (bw, 0)
    return EqualCosts(f, b, w, bw)


def peaks_along(problem: Problem, peak_of: Callable[[int, StageId], MemorySteps]) -> tuple[MemorySteps, ...]:
    """Return the peak of each device, by device.

    It is `peak_of(i, stage)` for the device of `stage`, the i-th in the pipeline (from 0). The problem must have one
    stage per device.
    """
    placed = {problem.placement.stage_device[s]: peak_of(i, s) for i, s in enumerate(problem.placement.chains[0])}
    return tuple(placed[d] for d in range(problem.devices))


def chunk_peaks(problem: Problem, chunks: Sequence[int]) -> tuple[MemorySteps, ...] | None:
    """Return each device's peak in steps of memory: `chunks[d]` activations, but no more than device d ever runs.

    None if activations differ between stages.
    """
    activations = set(problem.network.memory_in_flight)
    most = problem.microbatches * problem.placement.stages // problem.devices
    return tuple(min(most, number) * min(activations) for number in chunks) if len(activations) == 1 else None
