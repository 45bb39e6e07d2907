"""Bytes that a forward leaves for the backward, by what each operation keeps: arXiv 2205.05198, section 4.1.

With multi-head attention, a feed-forward block of four times the hidden size without a gate, and dropout, the sum is
that paper's s·b·h·(34 + 5·a·s/h), and 34·s·b·h where attention scores are not stored. Sequence parallelism divides it
all by the tensor parallel size (its equation 4).
"""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple

from pipesched.layers.derived.operations import head_sizes, hidden_bytes, tokens_of
from pipesched.layers.derived.shape import Attention, Parallel, Shape, Training

_LOGIT = 4  # bytes: logits and router probabilities are kept in 32 bits


class Activation(NamedTuple):
    """Bytes on one device: `total`, of which attention scores are `scores` and the layer's input is `layer_input`."""

    total: Fraction
    scores: Fraction
    layer_input: Fraction

    @property
    def freed_by_backward(self) -> Fraction:
        """What B gives back before W ran: scores and one hidden state (arXiv 2401.10241, table 1: 2h + 5as)."""
        return min(self.total, self.scores + self.layer_input)


def layer_activation(shape: Shape, training: Training, parallel: Parallel, moe: bool) -> Activation:
    """A transformer layer."""
    size = training.precision.number
    inputs = 2 * shape.hidden  # of both normalizations
    a_token = size * (inputs + _attention_numbers(shape) + (_expert_numbers(shape) if moe else _dense_numbers(shape)))
    if moe and shape.experts is not None:
        a_token += _LOGIT * shape.experts.number
    a_token += 2 * shape.hidden if training.dropout else 0  # two masks of a byte a number
    heads, _, _ = head_sizes(shape)
    # The output of the softmax; with dropout a mask of a byte a number, and its output.
    a_score = 0 if training.flash else (2 * size + 1 if training.dropout else size) * heads * training.sequence
    tokens = tokens_of(training, parallel)
    return Activation(tokens * (a_token + a_score), tokens * a_score, hidden_bytes(shape, training, parallel))


def head_activation(shape: Shape, training: Training, parallel: Parallel) -> Activation:
    """Normalization, projection and the loss's logits in 32 bits: 4·s·b·h·(1 + v/h), section 4.3 there."""
    hidden = hidden_bytes(shape, training, parallel)
    logits = tokens_of(training, parallel) * shape.vocabulary * _LOGIT
    return Activation(2 * hidden + logits, Fraction(0), hidden)


def mtp_activation(shape: Shape, training: Training, parallel: Parallel) -> Activation:
    """A layer, the two normalized states and their projection's input, and a head."""
    layer = layer_activation(shape, training, parallel, shape.experts is not None)
    head = head_activation(shape, training, parallel)
    return layer._replace(total=layer.total + head.total + 4 * hidden_bytes(shape, training, parallel))


def _attention_numbers(shape: Shape) -> int:
    """Numbers a token: input of the projections, queries, keys, values, input of the output projection; latents."""
    attention = shape.attention
    if isinstance(attention, Attention):
        return shape.hidden + attention.head_size * (2 * attention.heads + 2 * attention.kv_heads)
    a, key = attention.heads, attention.key_size + attention.rope_size
    latents = 2 * (attention.query_rank or 0) + 2 * attention.kv_rank + attention.rope_size  # before and after a norm
    return shape.hidden + latents + a * (2 * key + 2 * attention.value_size)


def _dense_numbers(shape: Shape) -> int:
    return shape.hidden + _feed_forward_numbers(shape, shape.ffn)


def _expert_numbers(shape: Shape) -> int:
    """Numbers a token: the router's input; for each expert used its input, what it keeps, and its output."""
    experts = shape.experts
    assert experts is not None, "a layer with experts"
    inside = _feed_forward_numbers(shape, experts.ffn)
    return shape.hidden + experts.per_token * (2 * shape.hidden + inside) + experts.shared * inside


def _feed_forward_numbers(shape: Shape, ffn: int) -> int:
    """Output of each projection up, and the input of the one down."""
    return (3 if shape.gated else 2) * ffn
