"""A model of stages with exact durations: they sleep in forward, B and W, and compute almost nothing.

With them a predicted and a measured makespan can be compared on a machine with fewer cores than devices.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from runtime.pytorch.models import PipelineModel
from runtime.pytorch.passes.weight_split import WeightStore, add_gradient

_ROWS, _WIDTH = 2, 8


def _sleep_until(moment: float) -> None:
    left = moment - time.monotonic()
    if left > 0:
        time.sleep(left)


class _Input(torch.autograd.Function):
    """Adds a shift; its backward sleeps for the time of the input's gradient."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, shift: Tensor | None, stage: SleepingStage) -> Tensor:
        ctx.stage, ctx.shifted = stage, shift is not None
        return x.clone() if shift is None else x + shift

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor | None, None]:
        ctx.stage.sleep("BW" if ctx.stage.fused else "B")
        return gradients[0], gradients[0].sum(0) if ctx.shifted else None, None


class _Weight(torch.autograd.Function):
    """Returns the weight; its backward sleeps for the time of the weight's gradient."""

    @staticmethod
    def forward(ctx: Any, weight: Tensor, stage: SleepingStage) -> Tensor:
        ctx.stage = stage
        return weight.clone()

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, None]:
        stage = ctx.stage
        (gradient,) = gradients
        fused = stage.fused
        if stage.store is None:
            stage.sleep("none" if fused else "W")
            return gradient, None

        def todo() -> None:
            stage.sleep("none" if fused else "W")
            add_gradient(stage.weight, gradient)

        stage.store.put(todo)
        return None, None


class SleepingStage(nn.Module):
    """Stage `number`, which computes x * weight, and sleeps for `seconds[kind]` in a pass of that kind.

    The keys of `seconds`, which is empty at first, are F, BW, B and W; a missing one is 0. The number is also the seed
    of the weight. The first stage shifts its input by a parameter, since autograd would otherwise skip an input
    gradient there.
    """

    def __init__(self, number: int, first: bool) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(number)
        self.weight = nn.Parameter(1 + 0.1 * torch.randn(_WIDTH, generator=generator, dtype=torch.float64))
        self.shift = nn.Parameter(torch.zeros(_WIDTH, dtype=torch.float64)) if first else None
        self.seconds: Mapping[str, float] = {}
        self.store: WeightStore | None = None
        self.fused = False

    def run_fused(self, fused: bool) -> None:
        """Set whether the backwards from now on are fused: B sleeps for the time of BW, and W does not sleep."""
        self.fused = fused

    def sleep(self, kind: str) -> None:
        _sleep_until(time.monotonic() + self.seconds.get(kind, 0.0))

    def forward(self, x: Tensor) -> Tensor:
        if torch.is_grad_enabled():  # without gradients only the shape is asked for
            self.sleep("F")
        moved: Tensor = _Input.apply(x, self.shift, self)  # type: ignore[no-untyped-call]
        weight: Tensor = _Weight.apply(self.weight, self)  # type: ignore[no-untyped-call]
        return moved * weight


def sleeping(stages: int, *, dtype: torch.dtype = torch.float64, seed: int = 0) -> PipelineModel:
    """Return a chain of sleeping stages whose times are 0 until their `seconds` are set.

    `seed` is that of the data; the parameters do not depend on it.
    """
    made: list[nn.Module] = [SleepingStage(number, number == 0).to(dtype) for number in range(stages)]

    def data(number: int) -> Tensor:
        generator = torch.Generator().manual_seed(1_000_003 * (seed + 1) + number)
        return torch.randn(_ROWS, _WIDTH, generator=generator, dtype=dtype)

    def loss(output: Tensor, target: Tensor) -> Tensor:
        return ((output - target) ** 2).mean()

    return PipelineModel(made, data, lambda number: data(number + 1), loss)
