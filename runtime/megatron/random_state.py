"""The state of all random generators of a rank, so that a forward that runs again drops out the same."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch
from megatron.core.tensor_parallel import random


class RandomState(NamedTuple):
    """Of the CPU, of the GPU, and of Megatron's generators for tensor parallelism."""

    cpu: torch.Tensor
    gpu: Any
    tracked: dict[str, Any]

    @staticmethod
    def now() -> RandomState:
        tracked = random.get_cuda_rng_tracker().get_states()
        return RandomState(torch.get_rng_state(), random._get_cuda_rng_state(), {**tracked})

    def restore(self) -> None:
        torch.set_rng_state(self.cpu)
        random._set_cuda_rng_state(self.gpu)
        random.get_cuda_rng_tracker().set_states(self.tracked)

    @contextmanager
    def again(self) -> Iterator[None]:
        """What is inside sees this state, and what comes after that of before."""
        before = RandomState.now()
        self.restore()
        try:
            yield
        finally:
            before.restore()
