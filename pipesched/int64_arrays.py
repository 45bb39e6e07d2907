"""Arrays of 64-bit integers for compiled code, whose sums would overflow without notice."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pipesched.errors import OutOfRange

# An array of 64-bit integers, of any shape.
IntArray: TypeAlias = NDArray[np.int64]

# Sums of four such numbers fit into 64 bits; times and memory of a problem add up to no more (`refuse_overflow`).
LARGEST = 2**60


def int64_array(values: Sequence[Any] | IntArray, largest: int = LARGEST) -> IntArray:
    """Return a new array of the whole numbers, in the shape of the nested sequence.

    `OutOfRange` if the absolute value of one exceeds `largest`.
    """
    try:
        found = np.array(values, np.int64)
    except OverflowError:
        raise OutOfRange(f"its numbers exceed {largest:.1e}") from None
    require_range(found, largest)
    return found


def require_range(numbers: IntArray, largest: int = LARGEST) -> None:
    """Raise `OutOfRange` if the absolute value of a number exceeds `largest`."""
    if numbers.size and not -largest <= numbers.min() <= numbers.max() <= largest:
        raise OutOfRange(f"its numbers exceed {largest:.1e}")


def int64_sum(values: Sequence[Any]) -> int:
    """Return the sum of whole numbers that compiled code adds in any order.

    `OutOfRange` if a partial sum might not fit, which is if the absolute `values` add up to more than `LARGEST`.
    """
    if (reached := sum(map(abs, values))) > LARGEST:
        raise OutOfRange(f"its numbers add up to {float(reached):.1e}, more than {LARGEST:.1e}")
    return sum(values)
