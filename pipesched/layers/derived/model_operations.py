"""Operations of one micro-batch in the whole model, forward and backward, with nothing computed again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import NamedTuple

from pipesched.layers.derived.adapters import adapter_products
from pipesched.layers.derived.operations import (
    Product,
    attention_operations,
    head_products,
    layer_products,
    mtp_products,
    operations_of,
    scan_operations,
)
from pipesched.layers.derived.shape import Parallel, Shape, Training

_WHOLE = Parallel()


class _Part(NamedTuple):
    """A number of layers of a type, by its name.

    Matrix products are those of one layer, and operations those of the forward of its attention and scan. `adapted`: it
    may have adapters.
    """

    name: str
    number: int
    products: Sequence[Product]
    attention: Fraction = Fraction(0)
    adapted: bool = True


def model_operations(shape: Shape, training: Training) -> Fraction:
    """Return the operations of a micro-batch in the whole model, forward and backward, without recomputation.

    The backward for the input has the products of the forward, and twice its attention; the gradients of weights have
    the products once more, without attention. Frozen weights have no gradients; layers before the first one that trains
    have no backward. An adapter adds its two small products to the forward, to the backward for the input, and to the
    gradients of weights.
    """
    total, reached = Fraction(0), not training.is_frozen("embedding")
    for name, number, products, attention, adapted in _parts(shape, training):
        lora = training.lora if adapted and not training.is_named(name) else None
        own = operations_of(adapter_products(lora, products)) if lora else Fraction(0)
        weights = Fraction(0) if training.is_frozen(name) else operations_of(products)
        reached = reached or bool(weights or own)
        each = operations_of(products) + own
        back = each + 2 * attention + weights + own if reached else Fraction(0)
        total += number * (each + attention + back)
    return total


def _parts(shape: Shape, training: Training) -> Iterator[_Part]:
    """Yield the model's layers with work that counts, in order.

    They are runs of equal transformer layers, multi-token prediction layers if there are any, and the output layer.
    """

    def attention(windowed: bool) -> Fraction:
        return attention_operations(shape, training, _WHOLE, windowed)

    for kind, number in shape.runs:
        products = layer_products(shape, training, _WHOLE, kind)
        mixed = attention(kind.windowed) if kind.attends else Fraction(0)
        mixed += scan_operations(shape, training, _WHOLE) if kind.mixes else 0
        yield _Part(shape.name_of(kind), number, products, mixed)
    if shape.mtp_layers:
        yield _Part("mtp", shape.mtp_layers, mtp_products(shape, training, _WHOLE), attention(False))
    yield _Part("head", 1, head_products(shape, training, _WHOLE), adapted=False)
