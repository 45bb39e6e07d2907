"""Numbers of parameters of layers, and the bytes and traffic that they cause on a device of a stage."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from fractions import Fraction
from typing import NamedTuple

from pipesched.layers.derived.mixer import Divided
from pipesched.layers.derived.operations import predicting
from pipesched.layers.derived.precision import Precision
from pipesched.layers.derived.shape import Attention, LayerKind, Parallel, Shape, Sharding, Training


class Parameters(NamedTuple):
    """Numbers of parameters of a whole layer: `shared` by all tokens, and of `experts`, of which a token uses a few.

    `norms` are gains of normalizations and biases of routers, which belong to no matrix product. `whole` of the shared
    parameters belong to products that every tensor parallel device has in full, each for its own tokens. `wide`
    parameters belong to products in 16 bits in a layer whose other weights are in fewer bytes than activations; None if
    there are none.
    """

    shared: int
    experts: int
    norms: int
    whole: int = 0
    wide: Parameters | None = None

    @property
    def total(self) -> int:
        return self.shared + self.experts + self.norms


class Matrix(NamedTuple):
    """Parameters of the matrix products of a `part` of a layer (`PARTS` of `precision`); `whole` as in `Parameters`."""

    part: str
    number: int
    whole: bool = False


def attention_matrices(shape: Shape) -> list[Matrix]:
    """Return the parameters of attention's projections: queries, keys, values and output, as one entry.

    Of latent attention they are two: projections down to latents and shared keys, which are `whole`, and all others.
    """
    h, attention = shape.hidden, shape.attention
    if isinstance(attention, Attention):
        queries = (3 if attention.gated else 2) * attention.heads
        return [Matrix("attention", h * attention.head_size * (queries + 2 * attention.kv_heads))]
    a, query = attention.heads, attention.key_size + attention.rope_size
    down = h * (attention.kv_rank + attention.rope_size + (attention.query_rank or 0))
    up = (attention.query_rank or h) * a * query
    up += attention.kv_rank * a * (attention.key_size + attention.value_size)
    return [Matrix("attention", down, whole=True), Matrix("attention", up + a * attention.value_size * h)]


def feed_forward(shape: Shape, ffn: int, width: int | None = None) -> int:
    """Return the number of parameters of a feed-forward block, or of one expert, of inner width `ffn`.

    `width` is the number of inputs and outputs for each token, by default the hidden size.
    """
    return (3 if shape.gated else 2) * (width or shape.hidden) * ffn


def layer_matrices(shape: Shape, kind: LayerKind) -> list[Matrix]:
    """Return the parameters of a layer's matrix products; of a mixer also those of its vectors, divided like them."""
    found = list[Matrix]()
    if kind.mixes and shape.mixing is not None:
        mixer = shape.mixing.mixer
        for at, one in enumerate(mixer.projections, 1):
            part = "mixer" if at < len(mixer.projections) else "mixer_output"
            found.append(Matrix(part, one.inner * one.columns, one.divided is Divided.TOKENS))
        found.append(Matrix("mixer", mixer.vectors))
    if kind.attends:
        found += attention_matrices(shape)
    if not kind.block:
        return found
    if not kind.moe:
        return [*found, Matrix("mlp", feed_forward(shape, shape.ffn))]
    experts, h = shape.experts, shape.hidden
    assert experts is not None, "a layer with experts"
    return [
        *found,
        Matrix("router", h * (experts.number + (1 if experts.shared_gate else 0)), whole=True),
        Matrix("latents", 2 * h * (experts.latent or 0), whole=True),
        Matrix("experts", _routed(shape) * experts.number),
        Matrix("shared_experts", experts.shared * feed_forward(shape, experts.ffn)),
    ]


def layer_parameters(shape: Shape, kind: LayerKind) -> Parameters:
    """Return the numbers of parameters of one whole layer of this kind, on all its devices together; `wide` is None."""
    norms = kind.parts * shape.hidden
    if kind.mixes and shape.mixing is not None:
        norms += shape.mixing.mixer.norms
    if kind.attends:
        norms += _attention_norms(shape)
    if kind.block and kind.moe and shape.experts is not None and shape.experts.biased:
        norms += shape.experts.number
    return _of_matrices(layer_matrices(shape, kind), norms)


def _of_matrices(matrices: Iterable[Matrix], norms: int) -> Parameters:
    """Return the parameters of products, with `norms` besides."""
    shared = experts = whole = 0
    for one in matrices:
        if one.part == "experts":
            experts += one.number
        else:
            shared, whole = shared + one.number, whole + (one.number if one.whole else 0)
    return Parameters(shared, experts, norms, whole)


def with_wide(parameters: Parameters, matrices: Iterable[Matrix], training: Training, within: str) -> Parameters:
    """Return the parameters with those of products in 16 bits marked, where other weights take fewer bytes.

    None is marked unless the model's products are in fewer than 16 bits: else all weights take what the precision says.
    `within` is the field `within` of the layer's kind (`ENDS`, `MTP` or empty).
    """
    own = training.precision
    if not own.format.narrow or own.weight_bytes >= own.number:
        return parameters
    wide = (one for one in matrices if not training.format_of(one.part, within).narrow)
    return parameters._replace(wide=_of_matrices(wide, 0))


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


def mtp_matrices(shape: Shape) -> list[Matrix]:
    """Return the parameters of the products of a multi-token prediction layer.

    They are a layer's, and a projection of two states to one.
    """
    return [*layer_matrices(shape, predicting(shape)), Matrix("mtp", 2 * shape.hidden**2)]


def mtp_parameters(shape: Shape) -> Parameters:
    """Return the parameters of a multi-token prediction layer.

    They are those of a layer, of a projection of two states to one, and of three norms.
    """
    layer = layer_parameters(shape, predicting(shape))
    return layer._replace(shared=layer.shared + 2 * shape.hidden**2, norms=layer.norms + 3 * shape.hidden)


def total_parameters(shape: Shape) -> int:
    """Return the number of a model's parameters without multi-token prediction, as models' sizes are published."""
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
    sharing, total = parallel.sharding, Fraction(0)
    for own in _on_a_device(parameters, parallel, precision):
        parts = (
            (own.weights, (Sharding.PARAMETERS,)),
            (own.number * precision.gradient, (Sharding.PARAMETERS, Sharding.GRADIENTS)),
            (own.number * precision.optimizer, (Sharding.PARAMETERS, Sharding.GRADIENTS, Sharding.OPTIMIZER)),
        )[: 1 if frozen else None]
        total += sum((size / (own.same if sharing in shared else 1) for size, shared in parts), Fraction(0))
    return total


def gathered_bytes(parameters: Parameters, parallel: Parallel, precision: Precision, frozen: bool = False) -> Fraction:
    """Return the bytes of gathered parameters if these are sharded: weights of two layers, and gradients of one.

    Else 0. A `frozen` layer has no gradients.
    """
    if parallel.sharding is not Sharding.PARAMETERS:
        return Fraction(0)
    gradient = 0 if frozen else max(precision.number, precision.reduction_bytes)
    every = _on_a_device(parameters, parallel, precision)
    return sum((2 * own.weights + own.number * gradient for own in every), Fraction(0))


class Exchanged(NamedTuple):
    """Bytes that a device sends for a layer to devices that have the same parameters.

    Once a step, `reduced` are gradients after the last backward, before the optimizer's step, and `gathered` are
    weights after it, before the next forward. `forward` and `backward` are bytes of every micro-batch:
    weights where parameters are sharded (FSDP), and a backward's gradients where these are sharded (ZeRO-2, FSDP).
    """

    reduced: Fraction
    gathered: Fraction
    forward: Fraction = Fraction(0)
    backward: Fraction = Fraction(0)


def exchanged_bytes(
    parameters: Parameters, parallel: Parallel, precision: Precision, frozen: bool = False
) -> Exchanged:
    """Return the bytes that a device sends for a layer, once a step and for every micro-batch.

    `parameters` are those of the whole layer, before tensor and expert parallelism divide them. Each collective sends
    all but the device's own part (arXiv 1910.02054, section 7). Without sharding, a step has an all-reduce of
    gradients, which is a reduce-scatter and an all-gather. With a sharded optimizer the all-gather is of weights. With
    sharded gradients, the reduce-scatter follows every micro-batch's backward instead, and the all-gather of weights is
    still once a step. With sharded parameters nothing is sent once a step: every micro-batch gathers the weights for
    its forward, gathers them again for its backward, and then reduces the gradients.

    A `frozen` layer has no gradients. It sends weights if parameters are sharded, for each forward and each backward,
    and else nothing.
    """
    every = _on_a_device(parameters, parallel, precision)
    once = sum((own.number * own.others for own in every), Fraction(0))
    weights = sum((own.weights * own.others for own in every), Fraction(0))
    reduced = Fraction(0) if frozen else once * precision.reduction_bytes
    if parallel.sharding is Sharding.PARAMETERS:
        return Exchanged(Fraction(0), Fraction(0), weights, weights + reduced)
    if frozen:
        return Exchanged(Fraction(0), Fraction(0))
    if parallel.sharding is Sharding.GRADIENTS:
        return Exchanged(Fraction(0), weights, backward=reduced)
    gradients = once * precision.gradient
    return Exchanged(gradients, weights) if parallel.sharded_optimizer else Exchanged(2 * gradients, Fraction(0))


def stepped_bytes(parameters: Parameters, parallel: Parallel, precision: Precision) -> Fraction:
    """Return the bytes moved by the optimizer step on a device.

    The gradient is read, the state read and written, the weight written, by a sharded optimizer for its own part. All
    gradients are also read for the norm, and set to zero.
    """
    gradient, optimizer, total = precision.gradient, precision.optimizer, Fraction(0)
    for own in _on_a_device(parameters, parallel, precision):
        moved = own.number * (gradient + 2 * optimizer) + own.weights
        # Gradients are also set to zero, and read for the norm.
        total += moved / (own.same if parallel.sharded_optimizer else 1) + 2 * gradient * own.number
    return total


class _OnDevice(NamedTuple):
    """Parameters that a device has, their bytes as weights, and the number of devices that have the same ones."""

    number: Fraction
    weights: Fraction
    same: int

    @property
    def others(self) -> Fraction:
        """The part of the parameters, as a share of 1, that others have if the `same` devices divide them evenly."""
        return Fraction(self.same - 1, self.same)


def _on_a_device(parameters: Parameters, parallel: Parallel, precision: Precision) -> tuple[_OnDevice, _OnDevice]:
    """Return the parameters for all tokens, and those of experts, that a device has."""
    wide = parameters.wide or Parameters(0, 0, 0)

    def on_device(count: Callable[[Parameters], Fraction], same: int) -> _OnDevice:
        number, more = count(parameters), precision.number - precision.weight_bytes
        return _OnDevice(number, number * precision.weight_bytes + count(wide) * more, same)

    return (
        on_device(lambda one: Fraction(one.shared - one.whole, parallel.tensor) + one.whole + one.norms,
                  parallel.data * parallel.context),
        on_device(lambda one: Fraction(one.experts, parallel.expert), parallel.devices // parallel.expert),
    )  # fmt: skip
