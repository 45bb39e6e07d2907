"""Numbers of parameters, in all and on one device of a stage."""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple

from pipesched.layers.derived.shape import Attention, Parallel, Precision, Shape, Sharding


class Parameters(NamedTuple):
    """Parameters of a layer: `shared` by all tokens, and those of `experts`, of which a token uses a few.

    `norms` are the gains of normalizations and biases of routers, which no matrix product has.
    """

    shared: int
    experts: int
    norms: int

    @property
    def total(self) -> int:
        return self.shared + self.experts + self.norms


def attention_matrices(shape: Shape) -> int:
    """Parameters of the projections: queries, keys, values and output."""
    h, attention = shape.hidden, shape.attention
    if isinstance(attention, Attention):
        return h * attention.head_size * (2 * attention.heads + 2 * attention.kv_heads)
    a, query = attention.heads, attention.key_size + attention.rope_size
    queries = h * a * query if attention.query_rank is None else attention.query_rank * (h + a * query)
    keys_and_values = h * (attention.kv_rank + attention.rope_size)
    keys_and_values += attention.kv_rank * a * (attention.key_size + attention.value_size)
    return queries + keys_and_values + a * attention.value_size * h


def feed_forward(shape: Shape, ffn: int) -> int:
    """Parameters of a feed-forward block of this width, or of one expert."""
    return (3 if shape.gated else 2) * shape.hidden * ffn


def layer_parameters(shape: Shape, moe: bool) -> Parameters:
    """Parameters of a transformer layer, with a feed-forward block or with experts."""
    latent = 0
    if not isinstance(shape.attention, Attention):
        latent = shape.attention.kv_rank + (shape.attention.query_rank or 0)
    norms, attention = 2 * shape.hidden + latent, attention_matrices(shape)
    if not moe:
        return Parameters(attention + feed_forward(shape, shape.ffn), 0, norms)
    experts = shape.experts
    assert experts is not None, "a layer with experts"
    one, router = feed_forward(shape, experts.ffn), shape.hidden * experts.number
    return Parameters(attention + router + experts.shared * one, experts.number * one, norms + experts.number)


def vocabulary_parameters(shape: Shape) -> int:
    """Parameters of an embedding, or of a head without its normalization."""
    return shape.vocabulary * shape.hidden


def mtp_parameters(shape: Shape) -> Parameters:
    """Parameters of a multi-token prediction layer: a layer, a projection of two hidden states to one, three norms."""
    layer = layer_parameters(shape, shape.experts is not None)
    return layer._replace(shared=layer.shared + 2 * shape.hidden**2, norms=layer.norms + 3 * shape.hidden)


def total_parameters(shape: Shape) -> int:
    """All parameters of the model but those of multi-token prediction, as published."""
    vocabulary = vocabulary_parameters(shape) * (1 if shape.tied else 2)
    layers = sum(number * layer_parameters(shape, moe).total for moe, number in shape.layers_of.items())
    return vocabulary + shape.hidden + layers


def active_parameters(shape: Shape) -> int:
    """The number of `total_parameters` that one token uses."""
    if shape.experts is None:
        return total_parameters(shape)
    idle = (shape.experts.number - shape.experts.per_token) * feed_forward(shape, shape.experts.ffn)
    return total_parameters(shape) - shape.layers_of.get(True, 0) * idle


def state_bytes(parameters: Parameters, parallel: Parallel, precision: Precision, frozen: bool = False) -> Fraction:
    """Bytes that a device holds at all times for a layer: weights, gradients and the optimizer's state.

    Of a frozen layer weights alone.

    Each is divided among the devices that hold the same parameters where these share it. Every device of a tensor
    parallel group has the norms.
    """
    sharing = parallel.sharding
    parts = (
        (precision.number, (Sharding.PARAMETERS,)),
        (precision.gradient, (Sharding.PARAMETERS, Sharding.GRADIENTS)),
        (precision.optimizer, (Sharding.PARAMETERS, Sharding.GRADIENTS, Sharding.OPTIMIZER)),
    )[: 1 if frozen else None]
    return sum(
        (own * Fraction(size, same if sharing in shared else 1)
         for own, same in _on_a_device(parameters, parallel) for size, shared in parts),
        Fraction(0),
    )  # fmt: skip


def gathered_bytes(parameters: Parameters, parallel: Parallel, precision: Precision) -> Fraction:
    """Where parameters are shared: weights of the layer that runs and of the next one, and the gradients of one."""
    if parallel.sharding is not Sharding.PARAMETERS:
        return Fraction(0)
    return sum((own for own, _ in _on_a_device(parameters, parallel)), Fraction(0)) * 3 * precision.number


class Exchanged(NamedTuple):
    """Bytes that a device sends for a layer to those that hold the same parameters.

    `reduced` are gradients after the last backward, `gathered` weights before the next forward. `forward` and
    `backward` are bytes of every micro-batch: weights where parameters are sharded (FSDP), and the gradients of a
    backward where these are (ZeRO-2, FSDP).
    """

    reduced: Fraction
    gathered: Fraction
    forward: Fraction = Fraction(0)
    backward: Fraction = Fraction(0)


def exchanged_bytes(
    parameters: Parameters, parallel: Parallel, precision: Precision, frozen: bool = False
) -> Exchanged:
    """A reduce-scatter of the gradients, and an all-gather of the weights, or without a sharded optimizer of gradients.

    Each sends all but a device's own part (arXiv 1910.02054, section 7). With sharded gradients every micro-batch
    reduces its own, with sharded parameters it also gathers weights twice, in 16 bits. Frozen ones have no gradients,
    and are gathered alone.
    """
    number, gradient, _ = precision[:3]
    once = sum(
        (own * Fraction(same - 1, same) for own, same in _on_a_device(parameters, parallel)),
        Fraction(0),
    )
    reduced = Fraction(0) if frozen else once * min(number, gradient)
    if parallel.sharding is Sharding.PARAMETERS:
        return Exchanged(Fraction(0), Fraction(0), once * number, once * number + reduced)
    if frozen:
        return Exchanged(Fraction(0), Fraction(0))
    if parallel.sharding is Sharding.GRADIENTS:
        return Exchanged(Fraction(0), once * number, backward=reduced)
    return Exchanged(once * gradient, once * (number if parallel.sharded_optimizer else gradient))


def stepped_bytes(parameters: Parameters, parallel: Parallel, precision: Precision) -> Fraction:
    """Bytes that the optimizer's step moves on a device: gradient read, its state read and written, weight written."""
    number, gradient, optimizer = precision[:3]
    return sum(
        (own * Fraction(gradient + 2 * optimizer + number, same if parallel.sharded_optimizer else 1)
         + 2 * gradient * own  # set to zero, and read for the norm
         for own, same in _on_a_device(parameters, parallel)),
        Fraction(0),
    )  # fmt: skip


def _on_a_device(parameters: Parameters, parallel: Parallel) -> tuple[tuple[Fraction, int], tuple[Fraction, int]]:
    """The parameters that all tokens use, and those of experts: how many, and how many devices hold the same."""
    dense = Fraction(parameters.shared, parallel.tensor) + parameters.norms
    experts = Fraction(parameters.experts, parallel.expert)
    return (dense, parallel.data * parallel.context), (experts, parallel.devices // parallel.expert)
