"""How much a unit of memory is, where its name says so; other names are labels."""

from __future__ import annotations

from fractions import Fraction

BYTES = {
    "B": Fraction(1),
    **{f"{letter}B": Fraction(1000**power) for power, letter in enumerate("kMGT", 1)},
    **{f"{letter}iB": Fraction(1024**power) for power, letter in enumerate("KMGT", 1)},
}


def bytes_in(unit: str) -> Fraction | None:
    """The bytes in a unit of that name; None where the name is only a label."""
    return BYTES.get("kB" if unit.strip() == "KB" else unit.strip())
