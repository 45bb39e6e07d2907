"""Matrix products of one micro-batch on one device: sizes and numbers of operations."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

from pipesched.layers.derived.mixer import Divided, Mixer
from pipesched.layers.derived.precision import KEPT, MTP, Format
from pipesched.layers.derived.shape import Attention, LayerKind, Parallel, Shape, Training


class Product(NamedTuple):
    """`groups` matrix products of `rows` x `inner` by `inner` x `columns`, run together; rows are tokens.

    `module` is Megatron-Core's name of the product, where it may have adapters, `format` that of its operands.
    """

    rows: Fraction
    columns: Fraction
    inner: Fraction
    groups: int = 1
    module: str = ""
    format: Format = KEPT

    @property
    def operations(self) -> Fraction:
        """The floating-point operations: a multiplication and an addition for each pair of numbers."""
        return 2 * self.rows * self.columns * self.inner * self.groups


def layer_products(shape: Shape, training: Training, parallel: Parallel, kind: LayerKind) -> list[Product]:
    """Return the products of a layer of this kind on one device: those of its mixer, of attention, and of its block.

    Tensor parallelism divides columns or the inner size; experts are whole.
    """
    found = list[Product]()
    if kind.mixes and shape.mixing is not None:
        found += _mixer_products(shape.mixing.mixer, training, parallel, kind)
    if kind.attends:
        found += _attention_products(shape, training, parallel, kind)
    return found + (block_products(shape, training, parallel, kind) if kind.block else [])


def block_products(shape: Shape, training: Training, parallel: Parallel, kind: LayerKind) -> list[Product]:
    """Return the products of a feed-forward block on one device; of experts the router's first, shared ones last."""
    tokens, own, h = stage_tokens(training, parallel), tokens_of(training, parallel), Fraction(shape.hidden)

    def format_of(part: str) -> Format:
        return training.format_of(part, kind.within)

    if not kind.moe or shape.experts is None:
        return _feed_forward(shape, tokens, Fraction(shape.ffn, parallel.tensor), 1, format_of("mlp"))
    experts = shape.experts
    found = [Product(own, Fraction(experts.number), h, format=format_of("router"))]
    local = experts.number // parallel.expert
    # Every expert gets as many tokens as every other, from all devices that share the experts.
    rows = own * experts.per_token / local
    routed = _feed_forward(shape, rows, Fraction(experts.ffn), local, format_of("experts"))
    if experts.latent is not None:
        latent, of_latents = Fraction(experts.latent), format_of("latents")
        up, down = routed
        routed = [Product(own, latent, h, format=of_latents), up._replace(inner=latent),
                  down._replace(columns=latent), Product(own, h, latent, format=of_latents)]  # fmt: skip
    found += routed
    if experts.shared:
        width = Fraction(experts.shared * experts.ffn, parallel.tensor)
        found += _feed_forward(shape, tokens, width, 1, format_of("shared_experts"))
    return found


def _mixer_products(mixer: Mixer, training: Training, parallel: Parallel, kind: LayerKind) -> list[Product]:
    tokens, own, found = stage_tokens(training, parallel), tokens_of(training, parallel), list[Product]()
    for one in mixer.projections:
        inner, columns = Fraction(one.inner), Fraction(one.columns)
        format = training.format_of("mixer_output" if one is mixer.projections[-1] else "mixer", kind.within)
        if one.divided is Divided.COLUMNS:
            found.append(Product(tokens, columns / parallel.tensor, inner, format=format))
        elif one.divided is Divided.INNER:
            found.append(Product(tokens, columns, inner / parallel.tensor, format=format))
        else:
            found.append(Product(own, columns, inner, format=format))
    return found


def _attention_products(shape: Shape, training: Training, parallel: Parallel, kind: LayerKind) -> list[Product]:
    tokens, own = stage_tokens(training, parallel), tokens_of(training, parallel)
    h, attention, format = Fraction(shape.hidden), shape.attention, training.format_of("attention", kind.within)
    heads = Fraction(attention.heads, parallel.tensor)

    def product(rows: Fraction, columns: Fraction, inner: Fraction, module: str = "linear_qkv") -> Product:
        return Product(rows, columns, inner, module=module, format=format)

    if isinstance(attention, Attention):
        size, groups = attention.head_size, Fraction(attention.kv_heads, parallel.tensor)
        queries = 2 * heads if attention.gated else heads
        whole = product(tokens, (queries + 2 * groups) * size, h)
        return [whole, product(tokens, h, heads * size, "linear_proj")]
    query, rank = attention.key_size + attention.rope_size, attention.query_rank
    down = attention.kv_rank + attention.rope_size + (rank or 0)
    up = attention.kv_rank, heads * (attention.key_size + attention.value_size)
    return [
        product(own, Fraction(down), h),
        product(tokens, heads * query, h if rank is None else Fraction(rank)),
        product(tokens, up[1], Fraction(up[0])),
        product(tokens, h, heads * attention.value_size, "linear_proj"),
    ]


def _feed_forward(shape: Shape, rows: Fraction, ffn: Fraction, groups: int, format: Format) -> list[Product]:
    h = Fraction(shape.hidden)
    up = Product(rows, (2 if shape.gated else 1) * ffn, h, groups, "linear_fc1", format)
    return [up, Product(rows, h, ffn, groups, "linear_fc2", format)]


def attention_operations(shape: Shape, training: Training, parallel: Parallel, windowed: bool) -> Fraction:
    """Return the operations of a layer's scores and weighted values, `windowed` if over near tokens alone.

    In a micro-batch's forward on one device these are 2 * keys * (key size + value size) a token and head, where a
    causal mask leaves half of the sequence's keys on average.
    """
    heads, key, value = head_sizes(shape)
    return tokens_of(training, parallel) * shape.reach(training.sequence, windowed) * heads * (key + value)


def scan_operations(shape: Shape, training: Training, parallel: Parallel) -> Fraction:
    """Return the operations of one layer's scan in a forward of a micro-batch on one device; 0 without a mixer.

    They are those on the device's share of the tokens, which context and tensor parallelism divide. A multiplication
    and an addition count one each, an exponential none.
    """
    if shape.mixing is None:
        return Fraction(0)
    scan = shape.mixing.mixer.scan
    return tokens_of(training, parallel) * (scan.operations + scan.elementwise)


def head_products(shape: Shape, training: Training, parallel: Parallel) -> list[Product]:
    """Return the product of the head, the projection to the vocabulary."""
    columns = Fraction(shape.vocabulary, parallel.tensor)
    return [
        Product(stage_tokens(training, parallel), columns, Fraction(shape.hidden), format=training.format_of("head"))
    ]


def predicting(shape: Shape) -> LayerKind:
    """Return the kind of the layer inside one of multi-token prediction."""
    return LayerKind(shape.experts is not None, within=MTP)


def mtp_products(shape: Shape, training: Training, parallel: Parallel) -> list[Product]:
    """Return the products of a multi-token prediction layer.

    They are those of a layer, of the projection of two hidden states to one, and of a head.
    """
    h = Fraction(shape.hidden)
    return [
        *layer_products(shape, training, parallel, predicting(shape)),
        Product(tokens_of(training, parallel), h, 2 * h, format=training.format_of(MTP, MTP)),
        *head_products(shape, training, parallel),
    ]


def operations_of(products: Sequence[Product]) -> Fraction:
    """Return the operations of these products together."""
    return sum((each.operations for each in products), Fraction(0))


def stage_tokens(training: Training, parallel: Parallel) -> Fraction:
    """Return the tokens of a micro-batch on each tensor parallel group, which works on all of them together."""
    return Fraction(training.sequence * training.microbatch_size, parallel.context)


def tokens_of(training: Training, parallel: Parallel) -> Fraction:
    """Return a device's share of a micro-batch's tokens, where tensor parallel devices divide them.

    Products, which tensor parallelism divides otherwise, come to the same work.
    """
    return stage_tokens(training, parallel) / parallel.tensor


def head_sizes(shape: Shape) -> tuple[int, int, int]:
    """Return the number of heads, the size of a head's query or key, and the size of its value."""
    attention = shape.attention
    if isinstance(attention, Attention):
        return attention.heads, attention.head_size, attention.head_size
    return attention.heads, attention.key_size + attention.rope_size, attention.value_size
