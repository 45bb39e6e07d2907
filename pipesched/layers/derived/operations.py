"""Floating-point operations of one micro-batch on one device, and the bytes that it exchanges inside its stage."""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple

from pipesched.layers.derived.parameters import feed_forward, layer_parameters, vocabulary_parameters
from pipesched.layers.derived.shape import Attention, Parallel, Shape, Training


class Operations(NamedTuple):
    """Operations of a forward: `products` with parameters, which B and W each do once more, and those of `attention`.

    The two products of attention have no parameters: their backward lies in B alone.
    """

    products: Fraction
    attention: Fraction


def layer_operations(shape: Shape, training: Training, parallel: Parallel, moe: bool) -> Operations:
    """A transformer layer: two operations a token and parameter used; causal attention over half of the sequence.

    Attention: scores and weighted values are 2 * sequence * (key size + value size) operations a token and head
    without a mask, and half of that with a causal one.
    """
    parameters = layer_parameters(shape, moe)
    used = parameters.shared
    if moe and shape.experts is not None:
        used += shape.experts.per_token * feed_forward(shape, shape.experts.ffn)
    heads, key, value = head_sizes(shape)
    tokens = tokens_of(training, parallel)
    return Operations(2 * tokens * used, tokens * training.sequence * heads * (key + value))


def head_operations(shape: Shape, training: Training, parallel: Parallel) -> Operations:
    """The projection to the vocabulary."""
    return Operations(2 * tokens_of(training, parallel) * vocabulary_parameters(shape), Fraction(0))


def mtp_operations(shape: Shape, training: Training, parallel: Parallel) -> Operations:
    """A multi-token prediction layer: a layer, the projection of two hidden states to one, and a head of its own."""
    layer = layer_operations(shape, training, parallel, shape.experts is not None)
    head = head_operations(shape, training, parallel)
    projection = 4 * tokens_of(training, parallel) * shape.hidden**2
    return Operations(layer.products + head.products + projection, layer.attention)


def model_operations(shape: Shape, training: Training) -> Fraction:
    """Of a micro-batch in the whole model, forward and twice as many backward, with nothing computed again."""
    whole, dense = Parallel(), shape.dense_layers
    counted = [(1, head_operations(shape, training, whole)), (dense, layer_operations(shape, training, whole, False))]
    if shape.experts is not None:
        counted.append((shape.layers - dense, layer_operations(shape, training, whole, True)))
    if shape.mtp_layers:
        counted.append((shape.mtp_layers, mtp_operations(shape, training, whole)))
    return 3 * sum((number * (each.products + each.attention) for number, each in counted), Fraction(0))


def tokens_of(training: Training, parallel: Parallel) -> Fraction:
    """A device's share of a micro-batch's tokens; tensor parallelism shares the work on each: it comes to the same."""
    return Fraction(training.sequence * training.microbatch_size, parallel.tensor * parallel.context)


def head_sizes(shape: Shape) -> tuple[int, int, int]:
    """Heads, and the numbers in a query or key and in a value of one head."""
    attention = shape.attention
    if isinstance(attention, Attention):
        return attention.heads, attention.head_size, attention.head_size
    return attention.heads, attention.key_size + attention.rope_size, attention.value_size


def hidden_bytes(shape: Shape, training: Training, parallel: Parallel) -> Fraction:
    """Bytes of the hidden state of a micro-batch on one device: what goes from stage to stage."""
    return tokens_of(training, parallel) * shape.hidden * training.precision.number


def tensor_bytes(shape: Shape, training: Training, parallel: Parallel) -> Fraction:
    """Bytes that a device sends in the forward of a layer for tensor parallelism, and as many in its backward.

    Two all-gathers and two reduce-scatters of the hidden state (arXiv 2205.05198, section 4.2.2), each of which sends
    all but a device's own part.
    """
    return 4 * (parallel.tensor - 1) * hidden_bytes(shape, training, parallel)


def context_bytes(shape: Shape, training: Training, parallel: Parallel) -> Fraction:
    """Bytes that a device sends in the forward of a layer for context parallelism, and twice as many in its backward.

    Keys and values of its part of the sequence go round the ring of the others (Ring Attention, arXiv 2310.01889;
    Megatron's `cp_comm_type: p2p`); the backward sends them once more, with their gradients. Latent attention sends
    every head's; with fewer heads of keys than tensor parallel devices each device sends one.
    """
    # Llama 3 70B at 8192 tokens, tensor 8, context 2: 512 * 8 * 256 numbers of 2 bytes are 2.1 MB a layer, 5 us at an
    # H100's 450 GB/s in a node and 7 us at an A100's 300. Attention over the other half of 69 GFLOP, at 40 % of 989 and
    # 312 TFLOP/s, takes 87 and 275 us: hidden. Between nodes, at 50 GB/s, it is 42 us.
    heads, key, value = head_sizes(shape)
    if isinstance(shape.attention, Attention):
        heads = max(shape.attention.kv_heads, parallel.tensor)
    sent = (parallel.context - 1) * tokens_of(training, parallel) * heads * (key + value)
    return sent * training.precision.number


def expert_bytes(shape: Shape, training: Training, parallel: Parallel) -> Fraction:
    """Bytes that a device sends in the forward of a layer with experts, and as many in its backward.

    Every token goes to its experts and back, in the precision of all; of the experts, those that are elsewhere count.
    """
    if shape.experts is None:
        return Fraction(0)
    elsewhere = Fraction(parallel.expert - 1, parallel.expert)
    return 2 * shape.experts.per_token * elsewhere * hidden_bytes(shape, training, parallel)
