"""Bytes that a device exchanges inside its stage, and the time of exchanges that is not hidden."""

from __future__ import annotations

from fractions import Fraction

from pipesched.layers.derived.operations import head_sizes, stage_tokens, tokens_of
from pipesched.layers.derived.shape import Attention, Hardware, Parallel, Shape, Training

# Computation takes 18.9 % longer while something is exchanged: the mean over four kinds of GPUs (arXiv 2507.03114).
SLOWER = 0.189


def at_once(computed: float, exchanged: float) -> float:
    """Return the seconds of computation and exchange running at the same time, slowed by shared multiprocessors and
    memory."""
    return max(exchanged, computed + exchanged * SLOWER / (1 + SLOWER))


def hidden_bytes(shape: Shape, training: Training, parallel: Parallel) -> Fraction:
    """Return the bytes of a micro-batch's hidden state on one device, which are sent from stage to stage."""
    return stage_tokens(training, parallel) / parallel.tensor * shape.hidden * training.precision.number


def tensor_bytes(shape: Shape, training: Training, parallel: Parallel) -> Fraction:
    """Return the bytes that a device sends for tensor parallelism in a layer's forward, and again in its backward.

    They are two all-gathers and two reduce-scatters of the hidden state (arXiv 2205.05198, section 4.2.2), each of
    which sends all but a device's own part; without sequence parallelism two all-reduces, which send as much.
    """
    return 4 * (parallel.tensor - 1) * hidden_bytes(shape, training, parallel)


def context_bytes(shape: Shape, training: Training, parallel: Parallel) -> Fraction:
    """Return the bytes that a device sends for context parallelism in a layer's forward; the backward sends twice as
    many.

    Keys and values of its part of the sequence go round the ring of the others (Ring Attention, arXiv 2310.01889;
    Megatron's `cp_comm_type: p2p`); the backward sends them once more, with their gradients. Latent attention sends
    every head's; with fewer heads of keys than tensor parallel devices each device sends one.
    """
    heads, key, value = head_sizes(shape)
    if isinstance(shape.attention, Attention):
        heads = max(shape.attention.kv_heads, parallel.tensor)
    sent = (parallel.context - 1) * tokens_of(training, parallel) * heads * (key + value)
    return sent * training.precision.number


def expert_bytes(shape: Shape, training: Training, parallel: Parallel) -> Fraction:
    """Return the bytes that a device sends to and from experts in a layer's forward, and again in its backward.

    Every token goes to its experts and its result back; only experts on other devices count.
    """
    if shape.experts is None:
        return Fraction(0)
    elsewhere = Fraction(parallel.expert - 1, parallel.expert)
    return 2 * shape.experts.per_token * elsewhere * hidden_bytes(shape, training, parallel)


def expert_seconds(shape: Shape, training: Training, parallel: Parallel, hardware: Hardware) -> float:
    """Return the seconds of dispatch and combine of a layer with experts, in each direction.

    With N nodes a token reaches (N - 1)(1 - (1 - 1/N)^k) other nodes for its k experts, if these are spread evenly. It
    is sent to each node once (DeepEP, HybridEP) or once for each expert there, and inside a node to every expert.
    Traffic between nodes and inside them runs at the same time.
    """
    sent, node = float(expert_bytes(shape, training, parallel)), hardware.node
    if not sent or hardware.expert is None or shape.experts is None:
        return 0.0
    if node is None or hardware.expert_in_node is None:
        return sent / hardware.expert
    # The combine is in 16 bits; a dispatch in the format of products.
    sent *= float(1 + training.precision.operand / training.precision.number) / 2
    nodes = max(1, -(-parallel.expert // node))
    inside, k = sent / hardware.expert_in_node, shape.experts.per_token
    reached = (nodes - 1) * (1 - (1 - 1 / nodes) ** k) if hardware.once_a_node else k * (1 - 1 / nodes)
    a_copy = sent / (k * (1 - 1 / parallel.expert))
    return max(inside, reached * a_copy / hardware.expert)
