"""Units of a problem's whole numbers, and the sizes of units with known names; other names are only labels.

The tick of a file is chosen in `pipesched/files/rounding.py`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from unicodedata import normalize


@dataclass(frozen=True)
class Units:
    """Sizes of a problem's whole numbers.

    A tick is `tick` times the file's time unit, a step of memory `resolution` times its memory unit. `time` and
    `memory` are the names of the file's units.
    """

    time: str = ""
    tick: Fraction = Fraction(1)
    memory: str = "activations"
    resolution: Fraction = Fraction(1)

    def with_finer_ticks(self, parts: int | Fraction) -> Units:
        """Return the units with each tick divided into `parts`."""
        return replace(self, tick=self.tick / parts)

    def with_finer_memory(self, parts: int | Fraction) -> Units:
        """Return the units with each step of memory divided into `parts`."""
        return replace(self, resolution=self.resolution / parts)


# Ticks and steps of memory as they are.
WHOLE = Units()

SECONDS = {
    "s": Fraction(1),
    "ms": Fraction(1, 10**3),
    "us": Fraction(1, 10**6),
    "\u03bcs": Fraction(1, 10**6),
    "ns": Fraction(1, 10**9),
}
# As messages name them.
TIMES = ("s", "ms", "us", "ns")


def seconds_in(unit: str) -> Fraction | None:
    """Return the seconds in a unit: s, ms, us (or with either micro sign) or ns; None for any other name, a label."""
    return SECONDS.get(normalize("NFKC", unit.strip()))  # of Unicode's two micro signs this leaves one


BYTES = {
    "B": Fraction(1),
    **{f"{letter}B": Fraction(1000**power) for power, letter in enumerate("kMGT", 1)},
    **{f"{letter}iB": Fraction(1024**power) for power, letter in enumerate("KMGT", 1)},
}


def bytes_in(unit: str) -> Fraction | None:
    """Return the bytes in a unit: B, kB (or KB) to TB, or KiB to TiB; None for any other name, a label."""
    return BYTES.get("kB" if unit.strip() == "KB" else unit.strip())
