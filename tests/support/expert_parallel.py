"""Expert-parallel layers as tasks on two streams: DeepSeek's published trace, and the means of its layers."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from pipesched.problem import placement
from pipesched.problem.passes import BW, B, F, W
from pipesched.problem.placement import Placement
from pipesched.problem.problem import Problem
from pipesched.problem.stage import COMPUTE, Stage, TaskSpec
from pipesched.problem.stage_columns import stages_of
from pipesched.problem.units import Units

# Microseconds, profile-data `train.json` (H800, EP64): attention, dispatch, experts, combine of each layer's forward;
# combine, experts, dispatch, attention of each backward in the order they ran, and the weight gradients behind them.
FORWARD = ((4833, 4600, 4289, 6000), (4393, 4150, 4420, 6070), (4567, 4440, 5212, 5850), (4602, 4190, 4644, 6050))
BACKWARD = ((3320, 5746, 6550, 9215), (3580, 5467, 6540, 9563), (3610, 5467, 5890, 9646), (3110, 4772, 6490, 9737))
WEIGHT = ((5333, 2381), (5059, 2390), (5260, 2400), (4639, 2412))


def layers(
    forward: Sequence[Sequence[int]],
    backward: Sequence[Sequence[int]],
    weight: Sequence[Sequence[int]],
    transfer: int = 0,
) -> Stage:
    """Return a stage of layers with expert parallelism; arguments are the ticks of each layer's tasks.

    A forward is attention, dispatch, MLP and combine; a backward the same in reverse; a weight gradient is that of the
    MLP, then that of attention, each after its own task of the backward.
    """
    f = [
        TaskSpec(stream, ticks, f"{name}{n}")
        for n, layer in enumerate(forward)
        for name, stream, ticks in zip(
            ("attn", "dispatch", "mlp", "combine"), (COMPUTE, "comm") * 2, layer, strict=True
        )
    ]
    b = [
        TaskSpec(stream, ticks, f"{name}{n}")
        for n, layer in enumerate(backward)
        for name, stream, ticks in zip(
            ("combine", "mlp", "dispatch", "attn"), ("comm", COMPUTE) * 2, layer, strict=True
        )
    ]
    w = [
        TaskSpec(COMPUTE, ticks, f"{name}{n}", 4 * n + after)
        for n, layer in enumerate(weight)
        for name, after, ticks in zip(("mlp-w", "attn-w"), (1, 3), layer, strict=True)
    ]
    fused = (*b, *(task._replace(after=None) for task in w))
    ticks = {kind: sum(task.ticks for task in tasks) for kind, tasks in ((F, f), (B, b), (W, w), (BW, fused))}
    (stage,) = stages_of(
        *((ticks[kind],) for kind in (F, B, W, BW)),
        (transfer,),
        tasks=(((F, tuple(f)), (B, tuple(b)), (W, tuple(w)), (BW, fused)),),
    )
    return stage


def trace(transfers: Fraction = Fraction(1)) -> Problem:
    """Return a problem with four layers of the trace on one device, dispatch and combine longer by a factor; in µs."""

    def longer(layer: Sequence[int], places: Sequence[int]) -> list[int]:
        return [int(ticks * transfers) if n in places else ticks for n, ticks in enumerate(layer)]

    stage = layers([longer(one, (1, 3)) for one in FORWARD], [longer(one, (0, 2)) for one in BACKWARD], WEIGHT)
    return Problem(placement.linear(1), 2, (stage,), name="trace", units=Units("ms", Fraction(1, 1000)))


def mean_layers(where: Placement, microbatches: int) -> Problem:
    """Return a problem with one layer a stage, of the trace's mean times, and a transfer of 0.6 ms; in 10 µs."""
    stage = layers([(460, 435, 464, 600)], [(340, 536, 637, 954)], [(507, 240)], 60)
    stages = (stage,) * where.stages
    return Problem(where, microbatches, stages, name="layers", units=Units("ms", Fraction(1, 100)))
