"""What a key that may hold a value with a unit means by it."""

from __future__ import annotations

from enum import Enum


class Kind(Enum):
    """What a key holds; the text is what it may be with a unit."""

    TIME = "a time such as 300 us"
    MEMORY = "an amount of memory such as 1.5 GiB"
    PART = "an amount of memory such as 1.5 GiB, or a share of the activation such as 40%"
    SHARE_OF_MEMORY = "a share such as 40%, or an amount of memory such as 1.5 GiB"
    SHARE = "a share such as 40%"
