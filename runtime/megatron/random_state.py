"""The state of all random generators of a rank, so that a recomputed forward uses the same dropout."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch
from megatron.core.tensor_parallel import random


class RandomState(NamedTuple):
    """States of the CPU's, the GPU's, and Megatron's tensor-parallel random generators.

    `tracked` has those of Megatron, by name.
    """

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
        """Context with this random state; the previous one is restored at its end."""
        before = RandomState.now()
        self.restore()
        try:
            yield
        finally:
            before.restore()
