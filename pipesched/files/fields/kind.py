"""Kinds of quantities that a key with a unit may have."""

from __future__ import annotations

from enum import Enum


class Kind(Enum):
    """The quantity of a key; the text says what it may be with a unit."""

    TIME = "a time such as 300 us"
    MEMORY = "an amount of memory such as 1.5 GiB"
    PART = "an amount of memory such as 1.5 GiB, or a share of the activation such as 40%"
    SHARE_OF_MEMORY = "a share such as 40%, or an amount of memory such as 1.5 GiB"
    SHARE = "a share such as 40%"
