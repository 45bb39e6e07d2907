"""Makes random numbers of a forward (dropout) reproducible: the same in the pipeline and in the reference."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import torch

_Result = TypeVar("_Result")


class Draws:
    """Which stages draw random numbers in their forward, and the seed of each of their forwards.

    A schedule runs forwards in another order than the reference, so they would draw other numbers; seeded by stage and
    micro-batch they draw the same.
    """

    def __init__(self, seed: int, device: torch.device) -> None:
        self._seed, self._device = seed, device
        self.stages: set[int] = set()

    def watch(self, stage: int, forward: Callable[[], _Result]) -> _Result:
        """Run a forward of a stage, and note whether it drew random numbers."""
        before = self._state()
        result = forward()
        if any(not torch.equal(one, other) for one, other in zip(before, self._state(), strict=True)):
            self.stages.add(stage)
        return result

    def seed(self, position: int, stage: int, microbatch: int) -> None:
        """Before the forward of a micro-batch, which is numbered over all steps, in a stage that draws."""
        if stage in self.stages:
            torch.manual_seed((self._seed * 1_000_003 + position) * 1_000_003 + microbatch)

    def _state(self) -> list[torch.Tensor]:
        on_gpu = [torch.cuda.get_rng_state(self._device)] if self._device.type == "cuda" else []
        return [torch.get_rng_state(), *on_gpu]
