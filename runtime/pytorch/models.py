"""Models to run and profile: stages with the data of their micro-batches, and a small GPT."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from pipesched.errors import BadInput
from pipesched.problem.quantities import StageId


@dataclass
class PipelineModel:
    """A model cut into stages, with the data of its micro-batches.

    A stage is a module, or a function without arguments that builds it: then only the process that runs the stage has
    its parameters. The value sent from stage to stage, and returned by `inputs(n)`, is a tensor, a tuple of tensors,
    which the next stage takes as its positional arguments, or a dict of tensors, which it takes as its keyword
    arguments. The last stage returns the first argument of `loss(output, targets(n))`. `n` counts micro-batches over
    all steps: step k of M micro-batches uses k*M to k*M + M - 1. All of them have one shape, with the batch as first
    dimension of every tensor of the inputs; the loss is a mean over the micro-batch.
    """

    stages: Sequence[nn.Module | Callable[[], nn.Module]]
    inputs: Callable[[int], Any]
    targets: Callable[[int], Any]
    loss: Callable[[Any, Any], Tensor]

    def stage(self, number: StageId) -> nn.Module:
        """Return stage `number` as a module, built now if it is given by a function."""
        given = self.stages[number]
        return given if isinstance(given, nn.Module) else given()

    def built(self) -> PipelineModel:
        """Return the model with every stage built as a module."""
        return replace(self, stages=[self.stage(number) for number in range(len(self.stages))])


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
    """Token and position embedding: maps token numbers [batch, sequence] to [batch, sequence, hidden]."""

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
    """Return a small GPT: embedding on the first stage, blocks spread evenly, norm and head on the last, cross-entropy.

    `layers` (default: one a stage) must be at least `stages`, or `stages` - 2; the first stages have one more if they
    do not divide. With two stages more than layers the first has only the embedding, the last norm and head, each other
    one a block. The same arguments give the same parameters and data, whatever random numbers were drawn before. The
    hidden state has `hidden` numbers a token; a micro-batch has `microbatch_size` sequences of `sequence` tokens from
    `vocabulary`, drawn with `seed` like the parameters. `BadInput` for sizes that do not go together.
    """
    layers = stages if layers is None else layers
    _check(stages, layers, hidden, heads)

    def stage(number: int) -> nn.Module:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(1000 * seed + number)
            return parts_of(number).to(dtype)

    def parts_of(number: int) -> nn.Sequential:
        parts: dict[str, nn.Module] = {}
        if number == 0:
            parts["embedding"] = _Embedding(vocabulary, sequence, hidden)
        for block in range(_blocks(number, stages, layers)):
            parts[f"block_{block}"] = _Block(hidden, heads)
        if number == stages - 1:
            parts["norm"], parts["head"] = nn.LayerNorm(hidden), nn.Linear(hidden, vocabulary, bias=False)
        made = nn.Sequential()
        for name, part in parts.items():
            made.add_module(name, part)
        return made

    def tokens(number: int) -> Tensor:
        generator = torch.Generator().manual_seed(1_000_003 * (seed + 1) + number)
        return torch.randint(vocabulary, (microbatch_size, sequence + 1), generator=generator)

    def loss(logits: Tensor, targets: Tensor) -> Tensor:
        return nn.functional.cross_entropy(logits.reshape(-1, vocabulary), targets.reshape(-1))

    makers = [partial(stage, number) for number in range(stages)]
    return PipelineModel(makers, lambda n: tokens(n)[:, :-1], lambda n: tokens(n)[:, 1:], loss)


def _blocks(number: StageId, stages: int, layers: int) -> int:
    """Return the number of blocks of stage `number`, when `layers` blocks are spread over `stages` as `gpt` says."""
    if stages == layers + 2:
        return int(0 < number < stages - 1)
    share, more = divmod(layers, stages)
    return share + (number < more)


def _check(stages: int, layers: int, hidden: int, heads: int) -> None:
    if layers < stages and stages != layers + 2:
        raise BadInput(f"layers: found {layers}; allowed: at least {stages}, one for each stage")
    if hidden % heads:
        raise BadInput(f"heads: found {heads}; allowed: a divisor of the hidden size {hidden}")
