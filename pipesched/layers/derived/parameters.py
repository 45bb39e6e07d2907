"""Numbers of parameters of layers, and the bytes and traffic that they cause on a device of a stage."""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple

from pipesched.layers.derived.shape import Attention, LayerKind, Parallel, Precision, Shape, Sharding


class Parameters(NamedTuple):
    """Parameters of a layer: `shared` by all tokens, and those of `experts`, of which a token uses a few.

    `norms` are gains of normalizations and biases of routers, which belong to no matrix product.
    """

    shared: int
    experts: int
    norms: int

    @property
    def total(self) -> int:
        return self.shared + self.experts + self.norms


def attention_matrices(shape: Shape) -> int:
    """Return the number of parameters of attention's projections: queries, keys, values and output."""
    h, attention = shape.hidden, shape.attention
    if isinstance(attention, Attention):
        queries = (3 if attention.gated else 2) * attention.heads
        return h * attention.head_size * (queries + 2 * attention.kv_heads)
    a, query = attention.heads, attention.key_size + attention.rope_size
    queries = h * a * query if attention.query_rank is None else attention.query_rank * (h + a * query)
    keys_and_values = h * (attention.kv_rank + attention.rope_size)
    keys_and_values += attention.kv_rank * a * (attention.key_size + attention.value_size)
    return queries + keys_and_values + a * attention.value_size * h


def feed_forward(shape: Shape, ffn: int, width: int | None = None) -> int:
    """Return the number of parameters of a feed-forward block, or of one expert, of inner width `ffn`.

    `width` is the number of inputs and outputs for each token, by default the hidden size.
    """
    return (3 if shape.gated else 2) * (width or shape.hidden) * ffn


def layer_parameters(shape: Shape, kind: LayerKind) -> Parameters:
    """Return the parameters of a layer of this kind."""
    matrices, norms = 0, kind.parts * shape.hidden
    if kind.mixes and shape.mixing is not None:
        mixer = shape.mixing.mixer
        matrices, norms = mixer.matrices + mixer.vectors, norms + mixer.norms
    if kind.attends:
        matrices, norms = matrices + attention_matrices(shape), norms + _attention_norms(shape)
    if not kind.block:
        return Parameters(matrices, 0, norms)
    if not kind.moe:
        return Parameters(matrices + feed_forward(shape, shape.ffn), 0, norms)
    experts = shape.experts
    assert experts is not None, "a layer with experts"
    routed = _routed(shape) * experts.number
    matrices += shape.hidden * (experts.number + 2 * (experts.latent or 0) + (1 if experts.shared_gate else 0))
    matrices += experts.shared * feed_forward(shape, experts.ffn)
    return Parameters(matrices, routed, norms + (experts.number if experts.biased else 0))


def _attention_norms(shape: Shape) -> int:
    """Return the gains of normalizations inside attention: of latents, or of each head's queries and keys."""
    attention = shape.attention
    if isinstance(attention, Attention):
        return 2 * attention.head_size if attention.normalized else 0
    return attention.kv_rank + (attention.query_rank or 0)


def _routed(shape: Shape) -> int:
    """Return the number of parameters of one expert; 0 for a model without experts."""
    return 0 if shape.experts is None else feed_forward(shape, shape.experts.ffn, shape.experts.latent)


def vocabulary_parameters(shape: Shape) -> int:
    """Return the number of parameters of an embedding, or of a head without its normalization."""
    return shape.vocabulary * shape.hidden


def mtp_parameters(shape: Shape) -> Parameters:
    """Return the parameters of a multi-token prediction layer: a layer, a projection of two states to one, three
    norms."""
    layer = layer_parameters(shape, LayerKind(shape.experts is not None))
    return layer._replace(shared=layer.shared + 2 * shape.hidden**2, norms=layer.norms + 3 * shape.hidden)


def total_parameters(shape: Shape) -> int:
    """Return the number of all parameters of the model except multi-token prediction, as models' sizes are
    published."""
    vocabulary = vocabulary_parameters(shape) * (1 if shape.tied else 2)
    layers = sum(number * layer_parameters(shape, kind).total for kind, number in shape.runs)
    return vocabulary + shape.hidden + layers


def active_parameters(shape: Shape) -> int:
    """Return the number of `total_parameters` that one token uses."""
    if shape.experts is None:
        return total_parameters(shape)
    idle = (shape.experts.number - shape.experts.per_token) * _routed(shape)
    return total_parameters(shape) - sum(number for kind, number in shape.runs if kind.moe) * idle


def state_bytes(parameters: Parameters, parallel: Parallel, precision: Precision, frozen: bool = False) -> Fraction:
    """Return the bytes that a device always holds for a layer: weights, gradients and optimizer state.

    Of a frozen layer it is weights only. Tensors that are sharded are divided among the devices that have the same
    parameters. Every device of a tensor parallel group has all norms.
    """
    sharing = parallel.sharding
    parts = (
        (precision.weight_bytes, (Sharding.PARAMETERS,)),
        (precision.gradient, (Sharding.PARAMETERS, Sharding.GRADIENTS)),
        (precision.optimizer, (Sharding.PARAMETERS, Sharding.GRADIENTS, Sharding.OPTIMIZER)),
    )[: 1 if frozen else None]
    return sum(
        (own * Fraction(size, same if sharing in shared else 1)
         for own, same in _on_a_device(parameters, parallel) for size, shared in parts),
        Fraction(0),
    )  # fmt: skip


def gathered_bytes(parameters: Parameters, parallel: Parallel, precision: Precision) -> Fraction:
    """Return the bytes of gathered parameters if these are sharded: weights of two layers, and gradients of one.

    Else 0.
    """
    if parallel.sharding is not Sharding.PARAMETERS:
        return Fraction(0)
    each = 2 * precision.weight_bytes + precision.number
    return sum((own for own, _ in _on_a_device(parameters, parallel)), Fraction(0)) * each


class Exchanged(NamedTuple):
    """Bytes that a device sends for a layer to devices that have the same parameters.

    Once a step, `reduced` are gradients after the last backward, `gathered` weights before the next forward. `forward`
    and `backward` are bytes of every micro-batch: weights where parameters are sharded (FSDP), and a backward's
    gradients where these are sharded (ZeRO-2, FSDP).
    """

    reduced: Fraction
    gathered: Fraction
    forward: Fraction = Fraction(0)
    backward: Fraction = Fraction(0)


def exchanged_bytes(
    parameters: Parameters, parallel: Parallel, precision: Precision, frozen: bool = False
) -> Exchanged:
    """Return the bytes that a device exchanges for a layer: reduce-scatter of gradients and all-gather of weights.

    Without a sharded optimizer the all-gather is of gradients. Each collective sends all but the device's own part
    (arXiv 1910.02054, section 7). With sharded gradients, gradients are reduced after every micro-batch; with sharded
    parameters, every micro-batch also gathers weights twice. If the layer is `frozen`, it has no gradients, and weights
    are only gathered.
    """
    number, gradient, weight = precision.number, precision.gradient, precision.weight_bytes
    once = sum(
        (own * Fraction(same - 1, same) for own, same in _on_a_device(parameters, parallel)),
        Fraction(0),
    )
    reduced = Fraction(0) if frozen else once * min(number, gradient)
    if parallel.sharding is Sharding.PARAMETERS:
        return Exchanged(Fraction(0), Fraction(0), once * weight, once * weight + reduced)
    if frozen:
        return Exchanged(Fraction(0), Fraction(0))
    if parallel.sharding is Sharding.GRADIENTS:
        return Exchanged(Fraction(0), once * weight, backward=reduced)
    return Exchanged(once * gradient, once * (weight if parallel.sharded_optimizer else gradient))


def stepped_bytes(parameters: Parameters, parallel: Parallel, precision: Precision) -> Fraction:
    """Return the bytes moved by the optimizer step on a device: gradient read, state read and written, weight
    written."""
    gradient, optimizer = precision.gradient, precision.optimizer
    return sum(
        (own * Fraction(gradient + 2 * optimizer + precision.weight_bytes, same if parallel.sharded_optimizer else 1)
         + 2 * gradient * own  # set to zero, and read for the norm
         for own, same in _on_a_device(parameters, parallel)),
        Fraction(0),
    )  # fmt: skip


def _on_a_device(parameters: Parameters, parallel: Parallel) -> tuple[tuple[Fraction, int], tuple[Fraction, int]]:
    """Return (number, devices with the same ones) of the parameters for all tokens, and of those of experts."""
    dense = Fraction(parameters.shared, parallel.tensor) + parameters.norms
    experts = Fraction(parameters.experts, parallel.expert)
    return (dense, parallel.data * parallel.context), (experts, parallel.devices // parallel.expert)
