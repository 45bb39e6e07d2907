"""Seconds of computation on one device: products in tiles and waves, attention, and kernels bound by memory traffic."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil
from typing import NamedTuple

from pipesched.layers.derived.exchange import at_once, context_bytes
from pipesched.layers.derived.operations import (
    Product,
    attention_operations,
    block_products,
    head_sizes,
    layer_products,
    stage_tokens,
    tokens_of,
)
from pipesched.layers.derived.precision import Format
from pipesched.layers.derived.shape import (
    Attention,
    Hardware,
    LatentAttention,
    LayerKind,
    Parallel,
    Shape,
    Sharding,
    Training,
)


class TileParams(NamedTuple):
    """Rows and columns of the tiles that products are computed in, and how well tiles of each size run.

    Sizes are those of cuBLAS's large kernels; `reached` is the share of the rate of the largest.
    """

    rows: int
    columns: int
    reached: float


TILES = (TileParams(128, 256, 1.0), TileParams(128, 128, 0.9), TileParams(64, 128, 0.7))


def product_seconds(product: Product, hardware: Hardware, written: float) -> float:
    """Return the seconds of one product, or group of products.

    They are those of the operations at the rate of full waves, then of writing results. A wave is one tile on each
    multiprocessor; the last wave, and the last tile of a row or column, take as long as full ones (NVIDIA, *Matrix
    Multiplication Background*). A tile's results, `written` bytes a number, are written when its sums are complete, not
    hidden by its operations; where reading the operands takes longer than multiplying, that time counts. 0 without
    operations.
    """
    rate, operations = hardware.product_rate(product.format), float(product.operations)
    if not operations:
        return 0.0
    rows, columns, inner = float(product.rows), float(product.columns), float(product.inner)
    taken = operations / rate
    if hardware.multiprocessors:
        taken /= max(_full(rows, columns, product.groups, tile, hardware.multiprocessors) for tile in TILES)
    if hardware.memory_rate:
        read = product.groups * (rows * inner + inner * columns) * float(product.format.operand)
        taken = max(taken, read / hardware.memory_rate)
        taken += product.groups * rows * columns * written / hardware.memory_rate
    return taken


def _full(rows: float, columns: float, groups: int, tile: TileParams, multiprocessors: int) -> float:
    """Return the share of useful work in full tiles and waves for `groups` products.

    Results are of `rows` x `columns`, on a device with so many `multiprocessors`.
    """
    tiles = groups * ceil(rows / tile.rows) * ceil(columns / tile.columns)
    waves = ceil(tiles / multiprocessors)
    return tile.reached * groups * rows * columns / (tile.rows * tile.columns * multiprocessors * waves)


def products_seconds(
    products: Sequence[Product], training: Training, parallel: Parallel, hardware: Hardware
) -> tuple[float, float, float]:
    """Return the seconds of a layer's products in the forward, in B and in W.

    In B the weights are transposed, and in W tokens are the inner size. W adds to the gradients of earlier
    micro-batches: it reads and writes them, unless each micro-batch reduces its own.
    """
    number, gradient, _ = training.precision[:3]
    added = 2 * gradient + (0 if training.fused_accumulation else 2 * number)
    if parallel.sharding is Sharding.PARAMETERS:
        added = number

    def total(of: Sequence[Product], written: float) -> float:
        return sum(product_seconds(each, hardware, written) for each in of)

    back = [each._replace(columns=each.inner, inner=each.columns) for each in products]
    weight = [each._replace(rows=each.inner, inner=each.rows) for each in products]
    return total(products, number), total(back, number), total(weight, added)


class TrafficParams(NamedTuple):
    """Memory traffic of kernels besides products, for each number that they work on.

    `norm` to `softmax` say how often it is read or written (`eager_norm`: by a normalization of several kernels). Bytes
    moved are `cast`, to convert an operand of a product to a narrower format; `scale`, to find the largest number of a
    tensor before that; `grouped`, to convert tokens of experts; `summed`, to add a partial result to a sum; `logits`,
    of each logit in each direction. The traffic of a backward is `back` times that of its forward.

    From the kernels of Megatron-Core: a normalization reads and writes each hidden state, a residual addition reads two
    and writes one; a gated activation reads two widths and writes one; rotary embedding reads and writes queries and
    keys; tokens are permuted to experts and back, each a read and a write; a softmax over stored scores reads and
    writes them, masked and scaled in one kernel. A backward reads what a forward read and wrote, and writes gradients.
    """

    norm: float = 2
    eager_norm: float = 16  # converted, squared, averaged, scaled, converted, multiplied: 32 bytes of 16-bit numbers
    residual: float = 3
    rotary: float = 2
    permuted: float = 4
    softmax: float = 4
    cast: float = 4  # bytes: 16 bits read, and two copies written, for products in narrower formats
    scale: float = 2  # bytes: 16 bits read, for the largest number of a tensor, where all of it has one scale
    grouped: float = 20  # bytes: the same where each expert's tokens are padded and converted by kernels of their own
    summed: float = 10  # bytes: a partial result read in 16 bits, its sum in 32 bits read and written
    back: float = 1.7  # of the traffic of a forward
    logits: float = 14  # bytes a logit, each way: written in 16 bits, cast, reduced and exponentiated in 32

    def activation(self, shape: Shape, training: Training) -> float:
        """Return how often the activation function reads or writes the width of a feed-forward block."""
        return 2 if not shape.gated else 3 if training.fused_activation else 5

    def casts(self, format: Format) -> float:
        """Return the bytes moved to convert a number that a product reads to a format; 0 for none.

        MXFP8 has scales by block alone, NVFP4 also one for all blocks (arXiv 2509.25149, section 2).
        """
        if not format.narrow:
            return 0.0
        return self.cast + (self.scale if format.operand <= 1 else 0)


TRAFFIC = TrafficParams()


def layer_traffic(shape: Shape, training: Training, parallel: Parallel, kind: LayerKind) -> float:
    """Return the bytes of memory traffic in a micro-batch's forward of a layer of this kind, except of products."""
    size, own = training.precision.number, float(tokens_of(training, parallel))
    tokens = float(stage_tokens(training, parallel))
    between = float(training.sequence * training.microbatch_size) / parallel.token_split
    norm = TRAFFIC.norm if training.fused_norms else TRAFFIC.eager_norm
    moved = between * kind.parts * (norm + TRAFFIC.residual) * shape.hidden
    if kind.attends:
        moved += _attention_moved(shape, training, own)
    if kind.mixes and shape.mixing is not None:
        moved += own * float(shape.mixing.mixer.moved)
    # What attention's products and a mixer's read, once for each format.
    readers = [part for part, has in (("attention", kind.attends), ("mixer", kind.mixes)) if has]
    casts = sum(TRAFFIC.casts(format) for format in {training.format_of(part, kind.within) for part in readers})
    converted = tokens * shape.hidden * casts
    if not kind.block:
        return moved * size + converted
    wide = TRAFFIC.activation(shape, training)
    if kind.moe and shape.experts is not None:
        experts, fused = shape.experts, training.fused_experts
        permuted = TRAFFIC.permuted * (experts.latent or shape.hidden)
        moved += own * experts.per_token * ((0 if fused else wide) * experts.ffn + permuted)
        moved += own * experts.shared * wide * experts.ffn
        readers = [part for part, has in (("latents", experts.latent), ("shared_experts", experts.shared)) if has]
        casts = sum(TRAFFIC.casts(training.format_of(part, kind.within)) for part in readers)
        converted += own * shape.hidden * casts
    else:
        moved += own * wide * shape.ffn
    return moved * size + converted + _block_casts(shape, training, parallel, kind)


def _attention_moved(shape: Shape, training: Training, own: float) -> float:
    """Return the numbers that attention moves between its products, with `own` tokens."""
    heads, key, value = head_sizes(shape)
    moved = own * TRAFFIC.rotary * heads * 2 * key
    if isinstance(shape.attention, LatentAttention):
        moved += own * 4 * heads * (key + value)  # assembled from two parts each
    else:
        moved += own * 3 * heads * value if shape.attention.gated else 0
        moved += own * TRAFFIC.norm * (heads + shape.attention.kv_heads) * key if shape.attention.normalized else 0
    if not training.flash:
        moved += own * training.sequence * heads * TRAFFIC.softmax
        moved += own * training.sequence * heads * 2 if training.dropout else 0
    return moved + own * 2 * heads * key


def _block_casts(shape: Shape, training: Training, parallel: Parallel, kind: LayerKind) -> float:
    """Return the bytes moved to convert what the products of a feed-forward block read to a narrower format.

    0 for none. Fused kernels of experts convert their second products' operands; shared experts' are not counted.
    """
    own = float(tokens_of(training, parallel))
    if not kind.moe or shape.experts is None:
        return own * (shape.hidden + shape.ffn) * TRAFFIC.casts(training.format_of("mlp", kind.within))
    casts = TRAFFIC.casts(training.format_of("experts", kind.within))
    if not casts:
        return 0.0
    routed, width = own * shape.experts.per_token, shape.experts.latent or shape.hidden
    if training.fused_experts:
        return routed * width * casts
    return routed * (width + shape.experts.ffn) * TRAFFIC.grouped


def head_casts(shape: Shape, training: Training, parallel: Parallel) -> tuple[float, float]:
    """Return the bytes moved to convert what the head's products read to a narrower format: forward, and backward.

    The forward converts hidden states, the backward gradients of logits, of which there are far more; 0 for no format.
    """
    casts = TRAFFIC.casts(training.format_of("head"))
    tokens, own = stage_tokens(training, parallel), tokens_of(training, parallel)
    return float(tokens) * shape.hidden * casts, float(own) * shape.vocabulary * casts


def converted_bytes(shape: Shape, training: Training, parallel: Parallel, kind: LayerKind) -> float:
    """Return the bytes that a layer moves, each direction, to keep the activation function's input in another format.

    A forward reads the input and writes it in that format; a backward reads this and writes it in its first format
    (`fused_bias_swiglu.py` of Megatron-Core). If the products of experts have the activation function in their kernels,
    these do both, and nothing is moved for these experts.
    """
    width = shape.ffn if kind.block else 0
    if kind.moe and shape.experts is not None:
        own = 0 if training.fused_experts else shape.experts.per_token
        width = (own + shape.experts.shared) * shape.experts.ffn
    return _kept_bytes(width, shape, training, parallel)


def _kept_bytes(width: int, shape: Shape, training: Training, parallel: Parallel) -> float:
    """Return the bytes moved to keep the inputs of activation functions of this width in another format; 0 for none."""
    number, kept = training.precision.number, training.precision.activation_input_bytes
    both = 0 if number == kept else number + kept
    return float(tokens_of(training, parallel)) * (2 if shape.gated else 1) * width * both


class FlashParams(NamedTuple):
    """Work of FlashAttention besides products, expressed as products: counts of keys and of numbers of a head.

    `ends`: keys that a block of queries could meet while it starts and ends. `exponential`: numbers of a head whose
    products take as long as the exponential of a score. `head`: size of a head for which a device's rate is given, on
    long sequences. From FlashAttention 3 on H100 (arXiv 2407.08608): with a causal mask 250 TFLOP/s at 512 tokens and
    575 at 16,896 (figure 9b); without one 497, 649 and 756 TFLOP/s with heads of 64, 128 and 256 (figure 5).
    """

    ends: float = 700
    exponential: float = 55
    head: float = 128

    def slower(self, reach: float, head: float) -> float:
        """Return the factor by which attention is slower than with long sequences and heads of the usual size.

        `reach` is twice the mean number of keys that a token attends to: the sequence, with a causal mask alone. `head`
        is the size of a head.
        """
        return (1 + self.ends / reach) * (1 + self.exponential / head) / (1 + self.exponential / self.head)


FLASH = FlashParams()
# Operations of attention's backward for one of its forward: four products for two; FlashAttention computes the scores
# once more (arXiv 2307.08691, section 4.1).
ATTENTION_BACKWARD, FLASH_BACKWARD = 2.0, 2.5


def attention_seconds(
    shape: Shape, training: Training, parallel: Parallel, hardware: Hardware, windowed: bool = False
) -> tuple[float, float]:
    """Return the seconds of one layer's attention products (scores and weighted values), forward and backward.

    They are their operations divided by the rate `attention_flops`, which short sequences and small heads do not reach
    (`FLASH`), or by `flops` if that is not known. Where scores are stored, they are products at `flops`, and if the
    memory's rate is known over the whole sequence, masked afterwards. Projections and memory traffic are counted
    elsewhere.
    `windowed`: the layer attends to near tokens alone.
    """
    rate = (hardware.attention_flops if training.flash else None) or hardware.flops
    forward = float(attention_operations(shape, training, parallel, windowed)) / rate
    if not training.flash:
        # Stored scores are computed over the whole sequence, masked afterwards.
        forward *= 2 if hardware.memory_rate else 1
    elif hardware.attention_flops:
        _, key, value = head_sizes(shape)
        forward *= FLASH.slower(float(shape.reach(training.sequence, windowed)), (key + value) / 2)
    return forward, forward * (FLASH_BACKWARD if training.flash else ATTENTION_BACKWARD)


class ScanParams(NamedTuple):
    """Rates of the scans of mixers, as shares of attention's rate.

    `share`: of attention's rate that scans reach, where theirs is not given (0 to 1). Mamba 2's own kernels on an H100
    take 77 to 79 ns a token with 128 heads of 64 and states of 128, in sequences of 8,192 and 16,384 (measured in
    vLLM's pull request 27299); 41 of them are what they move, as it is counted here, and the operations would take 16
    at attention's rate. `elementwise`: operations that an H100 does in products of 16 bits while it does one outside
    them (its data sheet: 989 and 67 TFLOP/s).
    """

    share: float = 0.43
    elementwise: float = 15

    def rate(self, hardware: Hardware) -> float:
        """Return the operations a second of scans: those given for the device, or their share of attention's."""
        return hardware.scan_flops or self.share * (hardware.attention_flops or hardware.flops)


SCAN = ScanParams()


def scan_seconds(shape: Shape, training: Training, parallel: Parallel, hardware: Hardware) -> tuple[float, float]:
    """Return the seconds of the scan of one layer's mixer, forward and backward; 0 without a mixer.

    They are its operations at the rate `SCAN`, and its exponentials as in attention. The part that follows the sequence
    step by step runs in waves of tiles of the state; a small micro-batch has fewer tiles than there are
    multiprocessors.
    """
    if shape.mixing is None:
        return 0.0, 0.0
    mixer, own = shape.mixing.mixer, float(tokens_of(training, parallel))
    scan, rate = mixer.scan, SCAN.rate(hardware)
    work = float(scan.operations + SCAN.elementwise * scan.elementwise) + 4 * FLASH.exponential * float(
        scan.exponentials
    )
    if scan.chains and hardware.multiprocessors:
        chains = scan.chains * training.microbatch_size / (parallel.tensor * parallel.context)
        waves = hardware.multiprocessors * ceil(chains / hardware.multiprocessors) / chains
        work += float(scan.chained) * (waves - 1)
    counted = scan.operations + scan.elementwise
    again = float((scan.repeated + scan.elementwise) / counted) if counted else 0.0
    forward = own * work / rate
    return forward, forward * (2 + again)


def ring_seconds(
    shape: Shape, training: Training, parallel: Parallel, hardware: Hardware, attention: float, back: bool
) -> float:
    """Return the seconds that context parallelism adds to the `attention` seconds of a layer.

    Both are those of the forward, or with `back` of the backward. A device attends in as many steps as the ring has
    devices, and meanwhile exchanges the next keys and values (Megatron's `cp_comm_type: p2p`): in a step its early or
    late half of queries meets all keys, or all queries half of them. Tiles of queries run in waves. Each step's result
    in 16 bits is added to a sum in 32 bits, and so are gradients of queries, keys and values in the backward
    (Transformer Engine's `context_parallel.py`).
    """
    steps, added = parallel.context, 0.0
    if steps == 1:
        return added
    heads, key, value = head_sizes(shape)
    local = float(training.sequence) / steps
    if hardware.multiprocessors:
        shares = [_attended(rows, heads / parallel.tensor * training.microbatch_size, hardware.multiprocessors)
                  for rows in (local, local / 2)]  # fmt: skip
        added = attention * (sum(1 / share for share in shares) / 2 - 1)
    if hardware.memory_rate:
        numbers = heads * value
        if back:
            own = shape.attention.kv_heads if isinstance(shape.attention, Attention) else heads
            numbers = heads * key + max(own, parallel.tensor) * (key + value)
        summed = steps * float(tokens_of(training, parallel)) * numbers * TRAFFIC.summed
        added += summed / hardware.memory_rate
    if hardware.context is not None:
        sent = (2 if back else 1) * float(context_bytes(shape, training, parallel)) / hardware.context
        overlapped = attention * (steps - 1) / steps
        added += at_once(overlapped, sent) - overlapped
    return added


def _attended(rows: float, heads: float, multiprocessors: int) -> float:
    """Return the share of useful tiles in the waves of attention, for this many query rows and heads.

    The device has so many `multiprocessors`.
    """
    tiles = ceil(rows / TILES[0].rows) * heads
    return tiles / (multiprocessors * ceil(tiles / multiprocessors))


def module_seconds(
    shape: Shape, training: Training, parallel: Parallel, hardware: Hardware, module: str, kind: LayerKind
) -> float:
    """Return the seconds of a module's forward in a layer of this kind, as its recomputation runs it.

    `module` is Megatron's name of a module that the layer has. 0 for a name that is none of Megatron's. Memory traffic
    counts only if the memory's rate is known.
    """
    own, size, rate = float(tokens_of(training, parallel)), training.precision.number, hardware.memory_rate
    own_kind = kind._replace(moe=module != "mlp" and shape.experts is not None, block=True)
    block = block_products(shape, training, parallel, own_kind)
    wide = TRAFFIC.activation(shape, training)
    converted = converted_bytes(shape, training, parallel, own_kind) + _block_casts(shape, training, parallel, own_kind)
    converted /= size
    moved, run = 0.0, list[Product]()
    match module:
        case "core_attn":
            heads = head_sizes(shape)[0]
            moved = 0 if training.flash else own * training.sequence * heads * TRAFFIC.softmax * size
            forward = attention_seconds(shape, training, parallel, hardware, kind.windowed)[0]
            return forward + (moved / rate if rate else 0)
        case "layernorm":
            norm = TRAFFIC.norm if training.fused_norms else TRAFFIC.eager_norm
            tokens = float(training.sequence * training.microbatch_size) / parallel.token_split
            moved = kind.parts * norm * tokens * shape.hidden
        case "mla_up_proj":
            run = layer_products(shape, training, parallel, kind._replace(block=False))[-3:-1]
        case "mlp":
            run, moved = block, own * wide * shape.ffn + converted
        case "moe" if shape.experts is not None:
            run, width = block, shape.experts.latent or shape.hidden
            moved = own * shape.experts.per_token * (wide * shape.experts.ffn + TRAFFIC.permuted * width)
            moved += own * shape.experts.shared * wide * shape.experts.ffn + converted
        case "moe_act" if shape.experts is not None:
            moved = own * shape.experts.per_token * wide * shape.experts.ffn
        case "shared_experts" if shape.experts is not None:
            width = shape.experts.shared * shape.experts.ffn
            run, moved = block[-2:], own * wide * width + _kept_bytes(width, shape, training, parallel) / size
    return products_seconds(run, training, parallel, hardware)[0] + (moved * size / rate if rate else 0)
