"""Applicability checks of published schedules; each raises `DoesNotApply` with a reason in one line."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from pipesched.errors import DoesNotApply
from pipesched.problem.passes import BW, B, F, Pass, W
from pipesched.problem.placement import bidirectional, v_shape
from pipesched.problem.problem import Problem


def one_stage_a_device(problem: Problem) -> tuple[int, ...]:
    """The stages in the order in which micro-batches traverse them, each on its own device."""
    placement = problem.placement
    if len(placement.chains) != 1 or placement.stages != placement.devices:
        raise DoesNotApply(f"needs one stage on each device; the placement is {placement.name}")
    return placement.chains[0]


def split_backward(problem: Problem) -> None:
    """The backward can run as B and W."""
    if not problem.pipeline.splits:
        raise DoesNotApply("needs a backward that splits into B and W: give times.weight")


def all_may_offload(problem: Problem) -> None:
    """Every activation may move to the host."""
    if not all(stage.offload for stage in problem.stages):
        raise DoesNotApply("needs offload on every stage: give memory.offload")


def round_robin(problem: Problem) -> int:
    """Stage s on device s mod p; returns the number of chunks a device."""
    placement = problem.placement
    if placement.name == "linear":
        raise DoesNotApply("needs several stages a device (placement: interleaved); with one it is 1f1b")
    expected = tuple(s % placement.devices for s in range(placement.stages))
    if len(placement.chains) != 1 or placement.stage_device != expected or placement.stages % placement.devices:
        raise DoesNotApply(f"needs stage s on device s mod p (placement: interleaved); it is {placement.name}")
    return placement.stages // placement.devices


def v_of_stages(problem: Problem) -> int:
    """Stages d and 2p-1-d on device d; returns the number of devices."""
    placement = problem.placement
    if len(placement.chains) != 1 or placement.stage_device != v_shape(placement.devices).stage_device:
        raise DoesNotApply(f"needs stages d and 2p-1-d on device d (placement: v-shape); it is {placement.name}")
    return placement.devices


def two_directions(problem: Problem) -> int:
    """Require every stage on two devices, one chain in each direction; returns the even number of devices."""
    placement, whole = problem.placement, bidirectional(problem.devices)
    if (placement.chains, placement.stage_device) != (whole.chains, whole.stage_device):
        raise DoesNotApply(f"needs every stage on two devices (placement: bidirectional); it is {placement.name}")
    if problem.chain_arcs.arcs:
        raise DoesNotApply("needs two chains of which none feeds the other")
    if placement.devices % 2:
        raise DoesNotApply(f"needs an even number of devices; found {placement.devices}")
    return placement.devices


class EqualCosts(NamedTuple):
    """The durations of every stage of a problem whose stages are all alike and whose transfers are free."""

    F: int
    B: int
    W: int
    BW: int


def equal_costs(problem: Problem) -> EqualCosts | None:
    """The setting of the papers' closed forms: equal stages and micro-batches, free transfers; None for any other."""
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


def peaks_along(problem: Problem, held: Callable[[int, int], int]) -> tuple[int, ...]:
    """Peaks of devices by what the i-th one of the pipeline holds, of i and its stage; one stage a device."""
    placed = {problem.placement.stage_device[s]: held(i, s) for i, s in enumerate(problem.placement.chains[0])}
    return tuple(placed[d] for d in range(problem.devices))


def chunk_peaks(problem: Problem, chunks: Sequence[int]) -> tuple[int, ...] | None:
    """Peaks of devices that hold so many chunk activations; None where activations differ from stage to stage."""
    each = set(problem.network.held_in_flight)
    most = problem.microbatches * problem.placement.stages // problem.devices
    return tuple(min(most, held) * min(each) for held in chunks) if len(each) == 1 else None
