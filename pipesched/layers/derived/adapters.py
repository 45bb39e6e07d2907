"""Low-rank adapters (LoRA, arXiv 2106.09685): a product x W becomes x W + x A B, where only A and B train."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from pipesched.layers.derived.operations import Product
from pipesched.layers.derived.parameters import Parameters
from pipesched.layers.derived.shape import Lora

NO_PARAMETERS = Parameters(0, 0, 0)


def adapter_products(lora: Lora, products: Sequence[Product]) -> list[Product]:
    """Return the matrix products of the adapters added to these products: of each x A, then (x A) B.

    Products that get no adapter have none.
    """
    rank = Fraction(lora.rank)
    return [
        part
        for one in products
        if one.module in lora.modules
        for part in (one._replace(columns=rank), one._replace(inner=rank))
    ]


def adapter_parameters(lora: Lora, products: Sequence[Product]) -> Parameters:
    """Return the numbers of parameters of the adapters of these products: `experts` are those of grouped products.

    `norms` and the other fields are 0. Products that get no adapter do not count.
    """
    own = adapter_products(lora, products)
    shared = sum((one.columns * one.inner for one in own if one.groups == 1), Fraction(0))
    experts = sum((one.columns * one.inner * one.groups for one in own if one.groups > 1), Fraction(0))
    return Parameters(int(shared), int(experts), 0)


def adapter_numbers(lora: Lora, products: Sequence[Product]) -> Fraction:
    """Return the numbers that the adapters' forward keeps for the backward: x A of each product."""
    own = (one for one in products if one.module in lora.modules)
    return sum((one.rows * one.groups * lora.rank for one in own), Fraction(0))
