"""How long a unit of time is, where its name says so; other names are labels."""

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
