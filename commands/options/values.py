"""Types of option values: seconds, shares, ranges, whole numbers; refused text raises `ArgumentTypeError`.

Each error says what is allowed.
"""

from __future__ import annotations

import re
from argparse import ArgumentTypeError
from collections.abc import Callable
from fractions import Fraction
from math import isfinite

# A decimal, possibly with a small exponent: exact as a fraction, and never of a size that takes long to write out.
_DECIMAL = re.compile(r"(\d{1,9}\.?\d{0,20}|\.\d{1,20})(e[+-]?\d{1,2})?", re.ASCII | re.IGNORECASE)


def seconds(text: str) -> float:
    """Convert a time limit to seconds; refused unless above 0."""
    try:
        number = float(text)
    except ValueError:
        number = float("nan")
    if not isfinite(number) or number <= 0:
        raise _refused(text, "a number of seconds above 0")
    return number


def share(text: str) -> Fraction:
    """Convert a number from 0 to 1, or a percentage from 0% to 100%, to a share of 1; other text is refused."""
    number = text.removesuffix("%")
    if _DECIMAL.fullmatch(number):
        value = Fraction(number) / (100 if text.endswith("%") else 1)
        if value <= 1:
            return value
    raise _refused(text, "a share from 0 to 1, such as 5% or 0.05")


def span_of(text: str) -> tuple[Fraction, Fraction]:
    """Convert a range such as `16..48` to its two ends, the lower first.

    Refused are other texts, and a first end above the second.
    """
    low, dots, high = text.partition("..")
    if dots and _DECIMAL.fullmatch(low) and _DECIMAL.fullmatch(high) and Fraction(low) <= Fraction(high):
        return Fraction(low), Fraction(high)
    raise _refused(text, "a range of memory in the file's unit, such as 16..48")


def whole(least: int, most: int) -> Callable[[str], int]:
    """Return a converter for whole numbers from `least` to `most`."""

    def read(text: str) -> int:
        if re.fullmatch(r"[0-9]{1,18}", text) and least <= int(text) <= most:
            return int(text)
        raise _refused(text, f"a whole number from {least} to {most}")

    return read


def wholes(least: int, most: int) -> Callable[[str], tuple[int, ...]]:
    """Return a converter for comma-separated whole numbers from `least` to `most`; repeated ones count once.

    The numbers stay in their order.
    """
    one = whole(least, most)

    def read(text: str) -> tuple[int, ...]:
        return tuple(dict.fromkeys(map(one, text.split(","))))

    return read


def _refused(text: str, allowed: str) -> ArgumentTypeError:
    return ArgumentTypeError(f"found {text!r}; allowed: {allowed}")
