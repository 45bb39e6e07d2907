"""Number formats: what weights, gradients, states and activations take, and in which format a part's products run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from types import MappingProxyType
from typing import NamedTuple


class Format(NamedTuple):
    """A format of a product's operands: bytes of a number, scales among them, and bits of a number without scales."""

    operand: Fraction
    bits: int

    @property
    def narrow(self) -> bool:
        """True if products run at a device's rate for formats below 16 bits."""
        return self.bits < 16


# FP8 has a byte a number, MXFP8 a byte of scale for 32 of them, NVFP4 half a byte and one of scale for 16 (OCP MX 1.0;
# arXiv 2509.25149).
FORMATS: Mapping[str, Format] = MappingProxyType({
    "bf16": Format(Fraction(2), 16),
    "fp16": Format(Fraction(2), 16),
    "fp32": Format(Fraction(4), 32),
    "fp8": Format(Fraction(1), 8),
    "mxfp8": Format(Fraction(33, 32), 8),
    "nvfp4": Format(Fraction(9, 16), 4),
})  # fmt: skip
# That of products which a recipe in fewer bits leaves as they are.
KEPT = FORMATS["bf16"]


class Precision(NamedTuple):
    """Bytes of a weight or activation (`number`), a gradient, and a parameter's optimizer state; format of products.

    `weight`: bytes of a weight of layers that keep it in another format than activations (Megatron's
    --fp8-param-gather), `activation_input`: of a number of the activation function's input that is kept for the
    backward in another format (activation_func_fp8_input_store of Megatron's TransformerConfig); None for the same.
    `reduction`: of a gradient as sharded gradients are reduced (`reduce_dtype` of PyTorch's FSDP); None for that of
    activations, or the gradient's own if this is smaller.
    """

    number: int
    gradient: int
    optimizer: int
    format: Format
    weight: int | None = None
    activation_input: int | None = None
    reduction: int | None = None

    @property
    def weight_bytes(self) -> int:
        return self.number if self.weight is None else self.weight

    @property
    def activation_input_bytes(self) -> int:
        return self.number if self.activation_input is None else self.activation_input

    @property
    def reduction_bytes(self) -> int:
        return min(self.number, self.gradient) if self.reduction is None else self.reduction


# Adam: a 32-bit weight and two moments. Formats below 16 bits keep 16-bit weights and cast what products read.
PRECISIONS: Mapping[str, Precision] = MappingProxyType({
    name: Precision(4, 4, 8, own) if own.bits == 32 else Precision(2, 4, 4 + 8, own) for name, own in FORMATS.items()
})  # fmt: skip

# Parts of a model whose products may be in a format of their own, and what they are.
PARTS: Mapping[str, str] = MappingProxyType({
    "attention": "projections of attention",
    "mixer": "products of a mixer",
    "mixer_output": "its last one; default that of mixer",
    "mlp": "feed-forward blocks",
    "experts": "experts that tokens choose",
    "shared_experts": "experts of all tokens",
    "router": "of experts",
    "latents": "products to what experts work on, and back",
    "mtp": "all of a multi-token prediction layer but the head",
    "head": "the projection to the vocabulary",
})  # fmt: skip
# In 16 bits where not said otherwise: in Megatron-Core neither is a layer of Transformer Engine (`TopKRouter.gating`,
# `ColumnParallelLinear` of `GPTModel`), and DeepSeek-V3 keeps both (arXiv 2412.19437, section 3.3.1).
_ALWAYS_KEPT = ("router", "head")
MTP, ENDS = "mtp", "ends"


@dataclass(frozen=True)
class Formats:
    """Formats of products that are not in the format of all others: of `parts` by name, and of layers at both ends.

    All products of the `first` layers and of the `last` ones of a model are in 16 bits.
    """

    parts: Mapping[str, Format] = field(default_factory=dict)
    first: int = 0
    last: int = 0

    def of(self, part: str, usual: Format, within: str = "") -> Format:
        """Return the format of a part's products, where all others have the `usual` one.

        `within` is `ENDS` for layers at both ends, whose products are in 16 bits even if `parts` names them, `MTP` for
        layers of multi-token prediction, else empty. With `MTP` the entry `mtp` of `parts` holds for all parts but
        `head`, before their own; without one they are as elsewhere. Parts in `_ALWAYS_KEPT` are in 16 bits where the
        usual format is narrower, unless `parts` names them. `mixer_output` without an entry has that of `mixer`.
        """
        if within == ENDS:
            return KEPT
        if within == MTP and part != "head" and MTP in self.parts:
            return self.parts[MTP]
        if part == "mixer_output" and part not in self.parts:
            part = "mixer"
        kept = part in _ALWAYS_KEPT and usual.narrow
        return self.parts.get(part, KEPT if kept else usual)

    def some_narrow(self, usual: Format) -> bool:
        """Return True if any product may be in fewer than 16 bits."""
        return usual.narrow or any(own.narrow for own in self.parts.values())


# All products in the format of the model's precision, but those always kept.
ALL_ALIKE = Formats()
