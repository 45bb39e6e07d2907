"""Lets Megatron-Core's own code run on a CPU: where it says "cuda" it gets "cpu". For tests only."""

from __future__ import annotations

import contextlib
from types import SimpleNamespace
from typing import Any

import torch
from megatron.core.tensor_parallel import layers, random
from megatron.core.transformer.moe import moe_utils


def _on_cpu(make: Any) -> Any:
    """Return a function that makes tensors as `make` does, on the CPU where a GPU is asked for."""

    def made(*args: Any, **named: Any) -> Any:
        if str(named.get("device", "")).startswith("cuda"):
            named["device"] = "cpu"
        return make(*args, **named)

    return made


class _Stream:
    """A stand-in for CUDA streams and events: all runs in one order, so that nothing needs to be waited for."""

    def __getattr__(self, name: str) -> Any:
        return lambda *_, **__: self

    def __enter__(self) -> None: ...

    def __exit__(self, *_: object) -> None: ...


def _add_product(x: torch.Tensor, grad_output: torch.Tensor, main_grad: torch.Tensor) -> None:
    """Do the work of Apex' kernel: add the gradient of a weight to the gradient so far."""
    main_grad.add_(grad_output.t().matmul(x))


def patch() -> None:
    functions: Any = torch
    for name in ("arange", "empty", "full", "ones", "tensor", "zeros"):
        setattr(functions, name, _on_cpu(getattr(functions, name)))
    cuda: Any = torch.cuda
    cuda.current_device = lambda: "cpu"
    cuda.synchronize = lambda *_, **__: None
    cuda.current_stream = cuda.default_stream = lambda *_, **__: _Stream()
    cuda.Stream = cuda.Event = lambda *_, **__: _Stream()
    cuda.stream = lambda stream: stream
    tensor: Any = torch.Tensor
    tensor.cuda = lambda self, *_, **__: self
    tensor.record_stream = lambda self, stream: None
    if not hasattr(moe_utils, "te_general_gemm"):
        moe_utils.te_general_gemm = None  # without Transformer Engine 0.16 forgets the name
    layers.fused_weight_gradient_mlp_cuda = SimpleNamespace(wgrad_gemm_accum_fp32=_add_product)
    layers._grad_accum_fusion_available = True
    states: Any = random
    states.CudaRNGStatesTracker.fork = lambda self, name=None: contextlib.nullcontext()
    states._get_cuda_rng_state = lambda *_, **__: torch.get_rng_state()
    states._set_cuda_rng_state = lambda state, *_, **__: torch.set_rng_state(state)
