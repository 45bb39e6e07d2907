"""Kinds of quantities whose values may have a unit: times, memory and shares."""

from __future__ import annotations

from enum import Enum


class QuantityKind(Enum):
    """The kind of quantity of a key, which decides the units that its values may have.

    The value is the text for messages. `TIME`, `MEMORY` and `SHARE` have units of that kind only. `PART` is an amount
    of memory, and may be given as a share of the activation; `SHARE_OF_MEMORY` is a share of the activation, and may be
    given as an amount of memory.
    """

    TIME = "a time such as 300 us"
    MEMORY = "an amount of memory such as 1.5 GiB"
    PART = "an amount of memory such as 1.5 GiB, or a share of the activation such as 40%"
    SHARE_OF_MEMORY = "a share such as 40%, or an amount of memory such as 1.5 GiB"
    SHARE = "a share such as 40%"
