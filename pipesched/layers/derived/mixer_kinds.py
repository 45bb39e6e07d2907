"""Kinds of mixers: Mamba 1 and 2, gated delta nets, Kimi's delta attention, lightning attention.

Products and parameters are those of the public implementations, counted in tests against their own classes. The work of
scans, what kernels move and what a forward keeps are counted from the kernels that train such models: mamba_ssm
(`mamba_split_conv1d_scan_combined`, selective scan), flash-linear-attention (`chunk_gated_delta_rule`, `chunk_kda`),
Lightning Attention 2 (arXiv 2401.04658); Megatron-LM's `megatron/core/ssm` says what stands between them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from types import MappingProxyType

from pipesched.layers.derived.mixer import Divided, Mixer, Projection, Scan

# Numbers of a head's values that one program of a chained kernel computes, a tile of the state.
_TILE = 64
# Numbers of 16 bits that one of 32 bits is.
_WIDE = 2


@dataclass(frozen=True)
class MixerSizes:
    """Sizes of a mixer in a model with `hidden` numbers of a token.

    `heads` have values of `value_size` numbers, `key_heads` keys and queries of `key_size`: of Mamba 2 the groups of B
    and C and the size of the state, of Mamba 1 one group for all channels (heads of one value). `convolution` is the
    number of tokens that the short convolution reaches, 0 without one, `chunk` that of a chunk of the scan, 1 without
    chunks (Mamba 1). `rank` is that of the low-rank products of steps (Mamba 1) or gates (Kimi's), not used in others.
    `normalized`: there is a normalization inside (Mamba 1: of steps, B and C; else before the last product).
    """

    hidden: int
    heads: int
    key_heads: int
    key_size: int
    value_size: int
    convolution: int
    chunk: int
    rank: int
    normalized: bool

    @property
    def keys(self) -> int:
        """The count of numbers in all keys of a token."""
        return self.key_heads * self.key_size

    @property
    def values(self) -> int:
        """The count of numbers in all values of a token."""
        return self.heads * self.value_size

    @property
    def states(self) -> Fraction:
        """The count of numbers in the states that are stored between chunks, for each token."""
        return Fraction(self.values * self.key_size, self.chunk)

    @property
    def tiles(self) -> int:
        """The number of tiles of a sequence's state that are computed at the same time."""
        return self.heads * -(-self.value_size // _TILE)


def _mamba2(of: MixerSizes) -> Mixer:
    """Mamba 2 (arXiv 2405.21060, section 6): gate, values, B, C and steps from one product.

    Its chunked scan has products of C and B of each group, of those with the values of each head (half of them, with a
    causal mask), and of states with B and C; backwards compute the first and the states again. Without a normalization
    of its own the gate is part of the scan's kernel.
    """
    d, k, size, chunk = of.values, of.keys, of.key_size, of.chunk
    groups, states = 2 * chunk * k, 2 * size * d
    norm = 2 * d if of.normalized else 0
    convolved = d + 2 * k
    return Mixer(
        "Mamba 2",
        of.heads,
        of.key_heads,
        (Projection(of.hidden, 2 * d + 2 * k + of.heads), Projection(d, of.hidden, Divided.INNER)),
        (of.convolution + 1) * convolved + 3 * of.heads + (d if of.normalized else 0),
        0,
        Scan(
            Fraction(groups + chunk * d + 2 * states), Fraction(groups + states), Fraction(of.heads * chunk, 2)
        ),
        # Convolution; values and B into states; products of groups; states written, passed on and read; values, gate, C
        # and result; normalization.
        2 * convolved + (d + k) + 2 * _WIDE * chunk * of.key_heads + 4 * _WIDE * of.states + (3 * d + k) + norm,
        # What the first product gave, the result before its gate, the input of the normalization.
        Fraction(2 * d + 2 * k + of.heads + d + (d if of.normalized else 0)),
        2 * d + 2 * k + of.heads,
    )  # fmt: skip


def _mamba1(of: MixerSizes) -> Mixer:
    """Mamba 1 (arXiv 2312.00752, algorithm 2), as in Jamba: steps, B and C from the convolved channels.

    The scan has no products: of each number of the state an exponential and 7 operations, all of which the backward
    does again.
    """
    d, size, inner = of.values, of.key_size, of.rank + 2 * of.key_size
    again = Fraction(7 * d * size)
    return Mixer(
        "Mamba 1",
        of.heads,
        1,
        (
            Projection(of.hidden, 2 * d), Projection(d, inner, Divided.INNER), Projection(of.rank, d),
            Projection(d, of.hidden, Divided.INNER),
        ),
        (of.convolution + 1) * d + d * size + 2 * d,
        inner if of.normalized else 0,
        Scan(Fraction(0), Fraction(0), Fraction(d * size), again),
        Fraction(2 * d + 2 * inner + 4 * d + 2 * size),
        Fraction(5 * d + (2 if of.normalized else 1) * inner),
        2 * d,
    )  # fmt: skip


def _delta_scan(of: MixerSizes, exponentials: Fraction) -> Scan:
    """Work per token of the chunked delta rule (arXiv 2412.06464, section 3.3); `exponentials` are given, of all heads.

    Products of keys with keys and with queries, the inverse of a triangular matrix, its products with keys and values,
    the values that a state predicts, the state's own change, and products of queries with the state and of scores with
    values. Changes of the state, and what it predicts, go along the sequence; backwards do these and the products of
    the inverse again.
    """
    chunk, key, value = of.chunk, of.key_size, of.value_size
    inverse, along = Fraction(2 * chunk * chunk, 3), 4 * key * value
    operations = 2 * chunk * (3 * key + 2 * value) + inverse + along + 2 * key * value
    repeated = Fraction(2 * chunk * (key + value) + along)
    return Scan(
        of.heads * operations, of.heads * repeated, exponentials, chained=Fraction(of.heads * along), chains=of.tiles
    )


def _gated_delta(of: MixerSizes) -> Mixer:
    """A gated delta net (arXiv 2412.06464), as in Qwen3-Next: queries, keys, values, gate, beta and decay from one
    product; queries and keys are normalized, and repeated for all heads of values."""
    d, k, heads, chunk = of.values, of.keys, of.heads, of.chunk
    repeated = 2 * heads * of.key_size if heads > of.key_heads else 0
    convolved, scores = 2 * k + d, heads * chunk
    return Mixer(
        "gated delta net",
        heads,
        of.key_heads,
        (Projection(of.hidden, 2 * k + 2 * d + 2 * heads), Projection(d, of.hidden, Divided.INNER)),
        of.convolution * convolved + 2 * heads,
        of.value_size,
        _delta_scan(of, Fraction(2 * scores)),
        # Convolution, normalization, repetition; what seven kernels read of keys and queries, six of values; scores in
        # 32 bits and their inverse; states; normalization with its gate.
        2 * convolved + 4 * k + (repeated and 2 * k + repeated) + 7 * heads * of.key_size + 6 * d + 6 * scores
        + 2 * of.states + 3 * d,
        Fraction(convolved + 2 * k + repeated + d + scores + 2 * d + 4 * heads),
        2 * k + 2 * d + 2 * heads,
    )  # fmt: skip


def _kimi_delta(of: MixerSizes) -> Mixer:
    """Kimi's delta attention (arXiv 2510.26692).

    It has a decay for each number of a key, and low-rank products for decays and gates.
    """
    d, k, heads, chunk = of.values, of.keys, of.heads, of.chunk
    convolved, scores = 2 * k + d, heads * chunk
    return Mixer(
        "Kimi's delta attention",
        heads,
        of.key_heads,
        (
            Projection(of.hidden, convolved + heads), Projection(of.hidden, 2 * of.rank, Divided.TOKENS),
            Projection(of.rank, k), Projection(of.rank, d), Projection(d, of.hidden, Divided.INNER),
        ),
        of.convolution * convolved + k + heads,
        of.value_size,
        # Exponentials of decays for queries and keys in six kernels, and for each pair of tokens in blocks of 16.
        _delta_scan(of, Fraction((6 + 16 // 2) * k)),
        2 * convolved + 7 * k + 10 * k + 6 * d + 10 * scores + 2 * of.states + 3 * d,
        Fraction(2 * convolved + (1 + _WIDE) * k + 2 * scores + 2 * d + 2 * of.rank + heads),
        convolved + k + d + heads,
    )  # fmt: skip


def _lightning(of: MixerSizes) -> Mixer:
    """Lightning attention (arXiv 2401.04658), as in MiniMax-01: queries, keys and values with a fixed decay of each
    head, a normalization of all heads together, and a gate from the layer's input. Its kernel runs along the
    sequence."""
    d, k, chunk = of.values, of.keys, of.chunk
    scores, states = 2 * chunk * (k + d), 4 * of.key_size * d
    return Mixer(
        "lightning attention",
        of.heads,
        of.key_heads,
        (Projection(of.hidden, 2 * k + d), Projection(of.hidden, d), Projection(d, of.hidden, Divided.INNER)),
        d,
        0,
        Scan(
            Fraction(scores + states), Fraction(2 * chunk * k + states // 2), Fraction(of.heads * chunk),
            chained=Fraction(scores + states), chains=of.tiles,
        ),
        Fraction(2 * (2 * k + d) + 2 * k + 2 * d + 2 * d + 3 * d),
        Fraction(2 * (2 * k + d) + 3 * d),
        2 * k + d,
    )  # fmt: skip


# Of each kind what makes it, the tokens of a chunk in its kernels, and which of `SOME_HAVE` it has.
_KINDS: Mapping[str, tuple[Callable[[MixerSizes], Mixer], int, tuple[str, ...]]] = MappingProxyType({
    "mamba1": (_mamba1, 1, ("convolution", "rank", "normalized")),
    "mamba2": (_mamba2, 128, ("convolution", "chunk", "normalized")),
    "gated_delta": (_gated_delta, 64, ("convolution", "chunk")),
    "kimi_delta": (_kimi_delta, 64, ("convolution", "chunk", "rank")),
    "lightning": (_lightning, 256, ("chunk",)),
})  # fmt: skip
# Sizes and choices that some kinds have, with the value that is true of a kind without it; None where there is none.
SOME_HAVE: Mapping[str, object] = MappingProxyType({"convolution": 0, "chunk": None, "rank": None, "normalized": True})
KINDS = tuple(_KINDS)


def usual_chunk(kind: str) -> int:
    """Return the tokens of a chunk of the scan in the kernels of this kind, one of `KINDS`."""
    return _KINDS[kind][1]


def kinds_with(name: str) -> tuple[str, ...]:
    """Return the kinds of mixers to which a size or choice applies: `convolution`, `chunk`, `rank` or `normalized`."""
    return tuple(kind for kind, (*_, has) in _KINDS.items() if name in has)


def mixer_of(kind: str, sizes: MixerSizes) -> Mixer:
    """Return the mixer of a kind, one of `KINDS`, and of these sizes."""
    return _KINDS[kind][0](sizes)
