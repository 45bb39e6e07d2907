"""Roles of layers in a training runtime, by name: embedding, transformer layer, multi-token prediction, head."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum

from pipesched.errors import BadInput


class Role(Enum):
    """The role of a layer: `EMBEDDING`, `TRANSFORMER` layer, `MTP` (multi-token prediction) layer, or `HEAD`.

    Runtimes count transformer layers; the others have fixed places.
    """

    EMBEDDING = "embedding"
    TRANSFORMER = "transformer layer"
    MTP = "multi-token prediction layer"
    HEAD = "head"


# Names in lower case; names that begin with mtp are MTP layers, and all others transformer layers.
EMBEDDING_NAMES = ("embedding", "embeddings", "embed", "tok_embeddings", "wte")
HEAD_NAMES = ("head", "lm_head", "output", "loss")


def role_of(name: str) -> Role:
    """Return the role of a layer of this name.

    Embedding or head by known names, multi-token prediction by the prefix `mtp`, else a transformer layer.
    """
    lower = name.lower()
    if lower in EMBEDDING_NAMES:
        return Role.EMBEDDING
    if lower in HEAD_NAMES:
        return Role.HEAD
    return Role.MTP if lower.startswith("mtp") else Role.TRANSFORMER


def check_places(names: Sequence[str]) -> None:
    """Raise `BadInput` if an embedding is not first, a head not last, or a transformer layer follows MTP."""
    roles = [role_of(name) for name in names]
    mistakes = []
    for at, (name, role) in enumerate(zip(names, roles, strict=True)):
        if role is Role.EMBEDDING and at:
            mistakes.append(f"layers: found {name} as layer {at}; allowed: an embedding is the first layer")
        if role is Role.HEAD and at != len(names) - 1:
            mistakes.append(f"layers: found {name} as layer {at}; allowed: a head is the last layer")
        if role is Role.TRANSFORMER and at and roles[at - 1] is Role.MTP:
            mistakes.append(f"layers: found {name} after {names[at - 1]}; allowed: MTP layers follow all others")
    if mistakes:
        raise BadInput(*mistakes)
