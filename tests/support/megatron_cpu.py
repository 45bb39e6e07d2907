"""Lets Megatron-Core's own code run on a CPU: where it says "cuda" it gets "cpu". For tests only."""

from __future__ import annotations

import contextlib
from typing import Any

import torch
from megatron.core.tensor_parallel import random
from torch.overrides import TorchFunctionMode


class CudaIsCpu(TorchFunctionMode):
    """Tensors that are made on a GPU are made on the CPU."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        if str(kwargs.get("device", "")).startswith("cuda"):
            kwargs["device"] = "cpu"
        return func(*args, **kwargs)


class _Stream:
    """There is one order of execution, so streams wait for nothing."""

    def __getattr__(self, name: str) -> Any:
        return lambda *_, **__: None


def patch() -> None:
    cuda: Any = torch.cuda
    cuda.current_device = lambda: "cpu"
    cuda.synchronize = lambda *_, **__: None
    cuda.current_stream = cuda.default_stream = lambda *_, **__: _Stream()
    tensor: Any = torch.Tensor
    tensor.cuda = lambda self, *_, **__: self
    states: Any = random
    states.CudaRNGStatesTracker.fork = lambda self, name=None: contextlib.nullcontext()
    states._get_cuda_rng_state = lambda *_, **__: torch.get_rng_state()
    states._set_cuda_rng_state = lambda state, *_, **__: torch.set_rng_state(state)
