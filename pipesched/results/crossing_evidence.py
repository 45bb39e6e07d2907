"""Evidence of bounds by crossings: which orders a check has to try. All numbers are exact.

Where orders are not followed that must end at `below` or later, that is in ticks of `tick` units of the problem's time;
None, in files of older versions: in the problem's own ticks. `form` names each in files.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar


@dataclass(frozen=True)
class CrossingChains:
    """Devices on which all orders of the steps of all chains are tried, and their blocks.

    Of those that have come equally far at most `width` are kept distinct; those that must end at `below` or later
    are not followed.
    """

    form: ClassVar[str] = "crossings of all chains"
    devices: tuple[int, ...]
    width: int
    below: int
    tick: Fraction | None = None
