"""The models that are run and profiled: a small GPT cut into stages, or the user's own stages."""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn

from pipesched.errors import BadInput


@dataclass
class PipelineModel:
    """A model cut into stages, with the data of its micro-batches.

    `stages[s]` maps one tensor to one tensor, the first from `inputs(n)`, the last to what `loss(output, targets(n))`
    takes. `n` counts micro-batches over all steps: step k of M micro-batches uses k*M to k*M + M - 1. All of them have
    one shape, with the batch as first dimension; the loss is a mean over the micro-batch.
    """

    stages: list[nn.Module]
    inputs: Callable[[int], Tensor]
    targets: Callable[[int], Tensor]
    loss: Callable[[Tensor, Tensor], Tensor]


class _Block(nn.Module):
    """A pre-norm transformer block with causal attention; maps [batch, sequence, hidden] to the same shape."""

    def __init__(self, hidden: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm_1, self.norm_2 = nn.LayerNorm(hidden), nn.LayerNorm(hidden)
        self.qkv, self.out = nn.Linear(hidden, 3 * hidden), nn.Linear(hidden, hidden)
        self.up, self.down = nn.Linear(hidden, 4 * hidden), nn.Linear(4 * hidden, hidden)

    def forward(self, x: Tensor) -> Tensor:
        batch, sequence, hidden = x.shape
        qkv = self.qkv(self.norm_1(x)).view(batch, sequence, 3, self.heads, hidden // self.heads)
        q, k, v = qkv.permute(2, 0, 3, 1, 4)
        mixed = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, sequence, hidden))
        result: Tensor = x + self.down(nn.functional.gelu(self.up(self.norm_2(x))))
        return result


class _Embedding(nn.Module):
    """Token and position: maps token numbers [batch, sequence] to [batch, sequence, hidden]."""

    def __init__(self, vocabulary: int, sequence: int, hidden: int) -> None:
        super().__init__()
        self.token, self.position = nn.Embedding(vocabulary, hidden), nn.Embedding(sequence, hidden)

    def forward(self, tokens: Tensor) -> Tensor:
        places = torch.arange(tokens.shape[1], device=tokens.device)
        result: Tensor = self.token(tokens) + self.position(places)
        return result


def gpt(
    stages: int,
    *,
    layers: int | None = None,
    hidden: int = 64,
    heads: int = 4,
    sequence: int = 32,
    vocabulary: int = 128,
    microbatch_size: int = 2,
    dtype: torch.dtype = torch.float32,
    seed: int = 0,
) -> PipelineModel:
    """A small GPT: embedding on the first stage, blocks shared out evenly, norm and head on the last, cross-entropy.

    `layers` (default: one a stage) must be at least `stages`; the first ones hold one more where it does not divide.
    The same arguments give the same parameters and data, whatever was drawn before.
    """
    layers = stages if layers is None else layers
    _check(stages, layers, hidden, heads)

    def stage(number: int) -> nn.Module:
        parts: dict[str, nn.Module] = {}
        if number == 0:
            parts["embedding"] = _Embedding(vocabulary, sequence, hidden)
        share, more = divmod(layers, stages)
        for block in range(share + (number < more)):
            parts[f"block_{block}"] = _Block(hidden, heads)
        if number == stages - 1:
            parts["norm"], parts["head"] = nn.LayerNorm(hidden), nn.Linear(hidden, vocabulary, bias=False)
        made = nn.Sequential()
        for name, part in parts.items():
            made.add_module(name, part)
        return made.to(dtype)

    def tokens(number: int) -> Tensor:
        chance = torch.Generator().manual_seed(1_000_003 * (seed + 1) + number)
        return torch.randint(vocabulary, (microbatch_size, sequence + 1), generator=chance)

    def loss(logits: Tensor, targets: Tensor) -> Tensor:
        return nn.functional.cross_entropy(logits.reshape(-1, vocabulary), targets.reshape(-1))

    with torch.random.fork_rng(devices=[]):
        made = []
        for number in range(stages):
            torch.manual_seed(1000 * seed + number)
            made.append(stage(number))
    return PipelineModel(made, lambda n: tokens(n)[:, :-1], lambda n: tokens(n)[:, 1:], loss)


def _check(stages: int, layers: int, hidden: int, heads: int) -> None:
    if layers < stages:
        raise BadInput(f"layers: found {layers}; allowed: at least {stages}, one for each stage")
    if hidden % heads:
        raise BadInput(f"heads: found {heads}; allowed: a divisor of the hidden size {hidden}")


def load_model(name: str, stages: int, **options: object) -> PipelineModel:
    """The model that `package.module:function` makes: `function(stages=S)` returns a `PipelineModel` of S stages.

    Of `options` (`dtype`, `seed`, ...) the function gets those it names. Modules in the working directory are found.
    Every process calls it: it must return the same parameters each time.
    """
    function = _function(name)
    taken = inspect.signature(function).parameters
    everything = any(one.kind is inspect.Parameter.VAR_KEYWORD for one in taken.values())
    model = function(stages=stages, **{key: value for key, value in options.items() if everything or key in taken})
    if not isinstance(model, PipelineModel):
        raise BadInput(f"--model {name}: found a {type(model).__name__}; allowed: a runtime.torch_model.PipelineModel")
    if len(model.stages) != stages:
        raise BadInput(f"--model {name}: found {len(model.stages)} stages; the schedule needs {stages}")
    return model


def _function(name: str) -> Callable[..., object]:
    module_name, colon, function_name = name.partition(":")
    if not (module_name and colon and function_name):
        raise BadInput(f"--model: found {name!r}; allowed: package.module:function")
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        function = getattr(importlib.import_module(module_name), function_name)
    except (ImportError, AttributeError) as error:
        raise BadInput(f"--model {name}: cannot be imported: {error}") from None
    if not callable(function) or "stages" not in inspect.signature(function).parameters:
        raise BadInput(f"--model {name}: found no function with a parameter `stages`; allowed: function(stages=S)")
    made: Callable[..., object] = function
    return made
