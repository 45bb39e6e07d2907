"""Models as users write them, for the tests of running: built per stage, with tuples and dicts between stages, dropout."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from runtime.pytorch.models import PipelineModel

WIDTH = 6


def data(number: int, dtype: torch.dtype = torch.float64) -> Tensor:
    return torch.randn(2, WIDTH, generator=torch.Generator().manual_seed(number), dtype=dtype)


class Named(nn.Module):
    """A stage that takes a tensor, a mask and a scale by name, and returns a dict with the mask unchanged."""

    def __init__(self, first: bool, last: bool) -> None:
        super().__init__()
        self.inner, self.first, self.last = nn.Linear(WIDTH, WIDTH), first, last

    def forward(self, x: Tensor, mask: Tensor, *, scale: Tensor | None = None) -> Any:
        scale = mask.to(x.dtype) if scale is None else scale
        y = torch.tanh(self.inner(x)) * scale
        return {"loss": (y,)} if self.last else {"x": y, "scale": scale * y.mean(), "mask": mask}


def dicts(stages: int, dtype: torch.dtype) -> PipelineModel:
    """Return a model with dicts as its input, between stages and as output; one tensor is of integers."""
    torch.manual_seed(3)
    made = [Named(s == 0, s == stages - 1).to(dtype) for s in range(stages)]

    def inputs(number: int) -> dict[str, Tensor]:
        return {"x": data(number, dtype), "mask": torch.ones(2, 1, dtype=torch.long)}

    def loss(output: Any, target: dict[str, Tensor]) -> Tensor:
        return nn.functional.mse_loss(output["loss"][0], target["y"])

    return PipelineModel(made, inputs, lambda n: {"y": data(n, dtype)}, loss)


class Pair(nn.Module):
    """Two tensors in, two out; the second is a view of the first."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(WIDTH, WIDTH)

    def forward(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        z = torch.tanh(self.inner(x + y))
        return z, z.view(2, WIDTH)


def tuples(stages: int, dtype: torch.dtype) -> PipelineModel:
    torch.manual_seed(4)
    made = [Pair().to(dtype) for _ in range(stages)]

    def loss(output: tuple[Tensor, Tensor], target: Tensor) -> Tensor:
        return nn.functional.mse_loss(output[0] + output[1], target)

    return PipelineModel(made, lambda n: (data(n, dtype), data(n + 1, dtype)), partial(data, dtype=dtype), loss)


def dropout(stages: int, dtype: torch.dtype) -> PipelineModel:
    torch.manual_seed(5)
    made = [nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.Dropout(0.5)).to(dtype) for _ in range(stages)]
    return PipelineModel(made, partial(data, dtype=dtype), partial(data, dtype=dtype), nn.functional.mse_loss)


class Mixed(nn.Module):
    """A linear layer under autocast, which asks the layer for its width."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(WIDTH, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        with torch.autocast("cpu", torch.bfloat16):
            result: Tensor = self.inner(x) / self.inner.in_features
        return result.float()


def autocast(stages: int) -> PipelineModel:
    """Return a model of float32 parameters, whatever type is asked for."""
    torch.manual_seed(6)
    one = partial(data, dtype=torch.float32)
    return PipelineModel([Mixed() for _ in range(stages)], one, one, nn.functional.mse_loss)


def small(stages: int) -> PipelineModel:
    """A float32 model whose gradients are about 1e-9."""
    torch.manual_seed(7)
    one = partial(data, dtype=torch.float32)
    made = [nn.Linear(WIDTH, WIDTH) for _ in range(stages)]
    return PipelineModel(made, one, one, lambda y, goal: 1e-9 * nn.functional.mse_loss(y, goal))


def logged(stages: int, dtype: torch.dtype) -> PipelineModel:
    """Return a model whose stages are built by functions that record which process called them."""

    def build(number: int) -> nn.Module:
        with (Path(os.environ["PIPESCHED_TEST_LOG"]) / f"{number}.{os.environ['RANK']}").open("w"):
            torch.manual_seed(number)
            return nn.Linear(WIDTH, WIDTH, dtype=dtype)

    makers: list[Callable[[], nn.Module]] = [partial(build, number) for number in range(stages)]
    return PipelineModel(makers, partial(data, dtype=dtype), partial(data, dtype=dtype), nn.functional.mse_loss)


def tied(stages: int) -> PipelineModel:
    made = [nn.Sequential(nn.Linear(WIDTH, WIDTH)) for _ in range(stages)]
    made[-1][0].weight = made[0][0].weight
    return PipelineModel(made, data, data, nn.functional.mse_loss)


def short(stages: int) -> PipelineModel:
    return small(stages - 1)


def nothing(stages: int) -> None:
    """No model."""


def broken(stages: int) -> PipelineModel:
    raise KeyError(f"no weights for {stages} stages")
