"""Value of a key of a plain document for one stage and piece."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any


def of_stage(value: Any, stage: int, piece: int = 0, pieces: int = 1) -> Fraction:
    """A number, a list with one a stage (or half as many, for both directions), or values of pieces."""
    if isinstance(value, list):
        by_piece = pieces > 1 and not any(isinstance(one, list | Mapping) for one in value) and len(value) == pieces
        if by_piece:
            return Fraction(value[piece])
        return of_stage(value[stage % len(value)], 0, piece, pieces)
    if isinstance(value, Mapping):
        return Fraction(value["first"]) + piece * Fraction(value["each_earlier"])
    return Fraction(value)


def of_device(value: Any, device: int) -> Fraction:
    """A number, or a list with one a device."""
    return Fraction(value[device] if isinstance(value, list) else value)
