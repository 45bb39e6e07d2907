"""Seconds of what one device computes: products by tiles and waves, attention, what the rate of its memory bounds."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil
from typing import NamedTuple

from pipesched.layers.derived.operations import (
    Product,
    head_sizes,
    layer_operations,
    layer_products,
    stage_tokens,
    tokens_of,
)
from pipesched.layers.derived.shape import Hardware, LatentAttention, Parallel, Shape, Training


class TileParams(NamedTuple):
    """Rows and columns of the tiles that products are computed in, and how well tiles of each size run.

    Sizes are those of cuBLAS's large kernels; `reached` is the share of the rate of the largest.
    """

    rows: int
    columns: int
    reached: float


TILES = (TileParams(128, 256, 1.0), TileParams(128, 128, 0.9), TileParams(64, 128, 0.7))


def product_seconds(product: Product, training: Training, hardware: Hardware) -> float:
    """One product, or group of products: its operations at the rate of full waves, or its bytes if these take longer.

    A wave is one tile on each multiprocessor; the last one, and the last tile of a row or column, take as long as full
    ones (NVIDIA, Matrix Multiplication Background User's Guide).
    """
    narrow = training.precision.narrow and hardware.narrow_flops
    rate = hardware.narrow_flops if narrow and hardware.narrow_flops else hardware.flops
    operations = float(product.operations)
    if not operations:
        return 0.0
    rows, columns, inner = float(product.rows), float(product.columns), float(product.inner)
    taken = operations / rate
    if hardware.multiprocessors:
        taken /= max(_full(rows, columns, product.groups, tile, hardware.multiprocessors) for tile in TILES)
    if hardware.memory_rate:
        read = product.groups * (rows * inner + inner * columns) * float(training.precision.operand)
        written = product.groups * rows * columns * training.precision.number
        taken = max(taken, (read + written) / hardware.memory_rate)
    return taken


def _full(rows: float, columns: float, groups: int, tile: TileParams, multiprocessors: int) -> float:
    """The share of what is computed that is asked for."""
    tiles = groups * ceil(rows / tile.rows) * ceil(columns / tile.columns)
    waves = ceil(tiles / multiprocessors)
    return tile.reached * groups * rows * columns / (tile.rows * tile.columns * multiprocessors * waves)


def products_seconds(products: Sequence[Product], training: Training, hardware: Hardware) -> tuple[float, float, float]:
    """Of a forward; of B, which is by the transposed weights; of W, whose inner size are the tokens."""

    def total(of: Sequence[Product]) -> float:
        return sum(product_seconds(each, training, hardware) for each in of)

    back = [each._replace(columns=each.inner, inner=each.columns) for each in products]
    weight = [each._replace(rows=each.inner, inner=each.rows) for each in products]
    return total(products), total(back), total(weight)


class TrafficParams(NamedTuple):
    """How often a number is read or written: unit, times an element.

    From the kernels of Megatron-Core: a normalization reads and writes each hidden state, a residual addition reads two
    and writes one; a gated activation reads two widths and writes one; rotary embedding reads and writes queries and
    keys; tokens are permuted to experts and back, each a read and a write; a softmax over stored scores reads and
    writes them, masked and scaled in one kernel. A backward reads what a forward read and wrote, and writes gradients.
    """

    hidden: float = 2 * 2 + 2 * 3
    rotary: float = 2
    permuted: float = 4
    softmax: float = 4
    cast: float = 3  # 16 bits read, and two copies written, for products in narrower formats
    back: float = 1.7  # of the traffic of a forward
    logits: float = 14  # bytes a logit, each way: written in 16 bits, cast, reduced and exponentiated in 32


TRAFFIC = TrafficParams()


def layer_traffic(shape: Shape, training: Training, parallel: Parallel, moe: bool) -> float:
    """Bytes that the memory of a device moves in the forward of a transformer layer, but for those of products."""
    size, own = training.precision.number, float(tokens_of(training, parallel))
    tokens = float(stage_tokens(training, parallel))
    between = float(training.sequence * training.microbatch_size) / parallel.token_split
    heads, key, value = head_sizes(shape)
    moved = between * TRAFFIC.hidden * shape.hidden + own * TRAFFIC.rotary * heads * 2 * key
    if isinstance(shape.attention, LatentAttention):
        moved += own * 4 * heads * (key + value)  # assembled from two parts each
    if not training.flash:
        moved += own * training.sequence * heads * TRAFFIC.softmax
        moved += own * training.sequence * heads * 2 if training.dropout else 0
    moved += own * 2 * heads * key
    wide = 3 if shape.gated else 2
    if moe and shape.experts is not None:
        experts = shape.experts
        moved += own * experts.per_token * (wide * experts.ffn + TRAFFIC.permuted * shape.hidden)
        moved += own * experts.shared * wide * experts.ffn
        operands = shape.hidden * (1 + experts.per_token) + experts.per_token * experts.ffn
    else:
        moved += own * wide * shape.ffn
        operands = shape.hidden + shape.ffn
    moved *= size
    if training.precision.narrow:
        moved += (own * operands + tokens * shape.hidden) * TRAFFIC.cast
    return moved


# Operations of attention's backward for one of its forward: four products for two; FlashAttention computes the scores
# once more (arXiv 2307.08691, section 4.1).
ATTENTION_BACKWARD, FLASH_BACKWARD = 2.0, 2.5


def attention_seconds(shape: Shape, training: Training, parallel: Parallel, hardware: Hardware) -> tuple[float, float]:
    """Each way, of one layer."""
    rate = hardware.attention_flops or hardware.flops
    forward = float(layer_operations(shape, training, parallel, False).attention) / rate
    if not training.flash:
        # Stored scores are computed over the whole sequence, masked afterwards.
        forward *= 2 if hardware.memory_rate else 1
    return forward, forward * (FLASH_BACKWARD if training.flash else ATTENTION_BACKWARD)


def module_seconds(shape: Shape, training: Training, parallel: Parallel, hardware: Hardware, module: str) -> float:
    """The forward of a module of a layer, as its recomputation runs it; Megatron's names."""
    own, size, rate = float(tokens_of(training, parallel)), training.precision.number, hardware.memory_rate
    moe = module not in ("mlp",) and shape.experts is not None
    products = layer_products(shape, training, parallel, moe)
    first = len(products) - (2 if not moe else 5 if shape.experts and shape.experts.shared else 3)
    wide = 3 if shape.gated else 2
    moved, run = 0.0, list[Product]()
    match module:
        case "core_attn":
            heads = head_sizes(shape)[0]
            moved = 0 if training.flash else own * training.sequence * heads * TRAFFIC.softmax * size
            forward = attention_seconds(shape, training, parallel, hardware)[0]
            return forward + (moved / rate if rate else 0)
        case "layernorm":
            moved = 2 * 2 * float(training.sequence * training.microbatch_size) / parallel.token_split * shape.hidden
        case "mla_up_proj":
            run = products[first - 3 : first - 1]
        case "mlp":
            run, moved = products[first:], own * wide * shape.ffn
        case "moe" if shape.experts is not None:
            run = products[first:]
            moved = own * shape.experts.per_token * (wide * shape.experts.ffn + TRAFFIC.permuted * shape.hidden)
        case "moe_act" if shape.experts is not None:
            moved = own * shape.experts.per_token * wide * shape.experts.ffn
        case "shared_experts":
            run = products[-2:]
    return products_seconds(run, training, hardware)[0] + (moved * size / rate if rate else 0)
