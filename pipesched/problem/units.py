"""Sizes of units of time and memory, where their names say them; other names are labels."""

from __future__ import annotations

from fractions import Fraction
from unicodedata import normalize

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
    """The seconds in a unit of that name; None where the name is only a label."""
    return SECONDS.get(normalize("NFKC", unit.strip()))  # of Unicode's two micro signs this leaves one


BYTES = {
    "B": Fraction(1),
    **{f"{letter}B": Fraction(1000**power) for power, letter in enumerate("kMGT", 1)},
    **{f"{letter}iB": Fraction(1024**power) for power, letter in enumerate("KMGT", 1)},
}


def bytes_in(unit: str) -> Fraction | None:
    """The bytes in a unit of that name; None where the name is only a label."""
    return BYTES.get("kB" if unit.strip() == "KB" else unit.strip())
