"""Bytes that a device exchanges inside its stage, and the time of exchanges that is not hidden."""

from __future__ import annotations

from fractions import Fraction

from pipesched.layers.derived.operations import head_sizes, stage_tokens, tokens_of
from pipesched.layers.derived.shape import Attention, Hardware, LayerKind, Parallel, Shape, Training

# Computation takes 18.9 % longer while something is exchanged: the mean over four kinds of GPUs (arXiv 2507.03114).
SLOWER = 0.189


def at_once(computed: float, exchanged: float) -> float:
    """Return the seconds that computation and exchange take when both run at the same time.

    Alone they take `computed` and `exchanged` seconds; shared multiprocessors and memory slow them.
    """
    return max(exchanged, computed + exchanged * SLOWER / (1 + SLOWER))


def hidden_bytes(shape: Shape, training: Training, parallel: Parallel) -> Fraction:
    """Return the bytes of a micro-batch's hidden state on one device, which are sent from stage to stage."""
    return stage_tokens(training, parallel) / parallel.tensor * shape.hidden * training.precision.number


def tensor_bytes(shape: Shape, training: Training, parallel: Parallel, kind: LayerKind) -> Fraction:
    """Return the bytes that a device sends for tensor parallelism in a layer's forward, and again in its backward.

    Each of attention (or a mixer) and the feed-forward block has an all-gather and a reduce-scatter of the hidden state
    (arXiv 2205.05198, section 4.2.2), each of which sends all but a device's own part; without sequence parallelism an
    all-reduce, which sends as much. Experts are whole, and get a device's own part of the tokens (arXiv 2504.14960):
    a block of experts has these exchanges for shared ones alone.
    """
    blocks = kind.parts - (1 if kind.moe and not (shape.experts and shape.experts.shared) else 0)
    return 2 * blocks * (parallel.tensor - 1) * hidden_bytes(shape, training, parallel)


def context_bytes(shape: Shape, training: Training, parallel: Parallel) -> Fraction:
    """Return the bytes that a device sends for context parallelism in a layer's forward.

    The backward sends twice as many. Keys and values of its part of the sequence go round the ring of the others (Ring
    Attention, arXiv 2310.01889; Megatron's `cp_comm_type: p2p`); the backward sends them once more, with their
    gradients. Latent attention sends every head's; with fewer heads of keys than tensor parallel devices each device
    sends one.
    """
    heads, key, value = head_sizes(shape)
    if isinstance(shape.attention, Attention):
        heads = max(shape.attention.kv_heads, parallel.tensor)
    sent = (parallel.context - 1) * tokens_of(training, parallel) * heads * (key + value)
    return sent * training.precision.number


def mixer_bytes(shape: Shape, training: Training, parallel: Parallel) -> Fraction:
    """Return the bytes that a device sends for context parallelism of a layer's mixer, in each direction.

    By two all-to-alls each device gets the whole sequence of its part of the heads, and gives back the results. 0 for a
    model without mixers.
    """
    if shape.mixing is None or parallel.context == 1:
        return Fraction(0)
    mixer, others = shape.mixing.mixer, Fraction(parallel.context - 1, parallel.context)
    return tokens_of(training, parallel) * (mixer.sent + mixer.output) * others * training.precision.number


def expert_seconds(shape: Shape, training: Training, parallel: Parallel, hardware: Hardware, within: str = "") -> float:
    """Return the seconds of dispatch and combine of a layer with experts, in each direction.

    Every token goes to its experts and its result back; only experts on other devices count. It is sent once to each
    node and device that it reaches, where its results are added (DeepEP, HybridEP), or once for each of its experts
    (all-to-all). Traffic between nodes and inside them runs at the same time. `within` is that of the layer's kind. 0
    without experts on other devices, or if the rate `hardware.expert` is unknown.
    """
    experts, devices = shape.experts, parallel.expert
    if experts is None or devices == 1 or hardware.expert is None:
        return 0.0

    def copies(parts: int) -> float:
        reached = experts.reached(parts) if hardware.once_a_node else experts.per_token
        return reached * (1 - 1 / parts)

    # The combine is in 16 bits; a dispatch in the format of the experts' products.
    width = Fraction(experts.latent or shape.hidden, shape.hidden)
    size = float(hidden_bytes(shape, training, parallel) * width) * 2
    if hardware.node is None or hardware.expert_in_node is None:
        return experts.per_token * (1 - 1 / devices) * size / hardware.expert
    size *= float(1 + training.format_of("experts", within).operand / training.precision.number) / 2
    nodes = max(1, -(-devices // hardware.node))
    return size * max(copies(devices) / hardware.expert_in_node, copies(nodes) / hardware.expert)
