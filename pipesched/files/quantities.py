"""Conversion of values with units, shares and fractions, as text in a document, to numbers in the file's own units.

`80 GB` is an amount of memory, `300 us` a time, `40%` a share (of the activation next to it, where an amount is
expected), and `5/3` a number without a finite decimal form. Any other text is left for the checks of the file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Any

from pipesched.errors import BadInput
from pipesched.files.fields.field import FRACTION, QUANTITY, finite_number
from pipesched.files.fields.kind import QuantityKind
from pipesched.files.quantity_forms import Form
from pipesched.problem.units import BYTES, TIMES, bytes_in, seconds_in

_QUANTITY, _FRACTION = re.compile(QUANTITY), re.compile(FRACTION)


def in_plain_numbers(document: object, form: Form) -> object:
    """Return the document with every value with a unit as a number in the file's unit; `BadInput` lists wrong units.

    A share such as `40%` becomes an amount of memory or a number such as 0.4, as its key has it, and `5/3` a fraction.
    It is a copy. What is no dictionary is returned as it is.
    """
    if not isinstance(document, dict):
        return document
    walk = _Walk(document, form)
    # Activations first: shares are of them.
    found = walk.converted(walk.converted(document, only_parts=False), only_parts=True)
    if walk.mistakes:
        raise BadInput(*walk.mistakes)
    return found


class _Walk:
    """Conversion of the values of one document; `mistakes` collects a line for each unit that a key may not have."""

    def __init__(self, document: Mapping[str, Any], form: Form) -> None:
        self._document, self._form, self.mistakes = document, form, list[str]()

    def converted(self, document: Any, only_parts: bool) -> Any:
        """Return the document with values converted: with `only_parts` shares of an activation, else all other values.

        Shares are converted last, when the activation is a plain number.
        """
        return self._value(document, "", "", None, only_parts)

    def _value(self, value: Any, path: str, shown: str, activation: object, only_parts: bool) -> Any:
        if isinstance(value, dict):
            prefix, before = (f"{path}.", f"{shown}.") if path else ("", "")
            if f"{prefix}activation" == self._form.activations:
                activation = value.get("activation")
            return {
                key: self._value(inner, f"{prefix}{key}", f"{before}{key}", activation, only_parts)
                for key, inner in value.items()
            }
        if isinstance(value, list):
            by_stage = isinstance(activation, list) and len(activation) == len(value) and self._kind(path)
            own: list[Any] = activation if by_stage and isinstance(activation, list) else [activation] * len(value)
            return [self._value(inner, path, f"{shown}[{n}]", own[n], only_parts) for n, inner in enumerate(value)]
        kind = self._kind(path) if isinstance(value, str) else None
        if kind is not None and _FRACTION.fullmatch(value.strip()):
            return Fraction(value.strip())
        match = _QUANTITY.fullmatch(value.strip()) if kind else None
        if (
            kind is None
            or match is None
            or (kind in (QuantityKind.PART, QuantityKind.SHARE_OF_MEMORY)) is not only_parts
        ):
            return value
        number = finite_number(Decimal(match[1]))
        try:
            return value if number is None else self._number(number, match[2], kind, activation)
        except _WrongUnit as wrong:
            self.mistakes.append(f"{shown}: found {value!r}; allowed: {wrong}")
            return 0

    def _kind(self, path: str) -> QuantityKind | None:
        while path:
            if path in self._form.kinds:
                return self._form.kinds[path]
            path = path.rpartition(".")[0]
        return None

    def _number(self, number: Fraction, unit: str, kind: QuantityKind, activation: object) -> object:
        """Return the number in the file's unit, a share as its part of the activation; `_WrongUnit` for other units."""
        if unit == "%" and kind in (QuantityKind.SHARE, QuantityKind.SHARE_OF_MEMORY):
            return number / 100
        if unit == "%" and kind is QuantityKind.PART:
            if isinstance(activation, list):
                return [_part(number, one) for one in activation]
            return _part(number, 1 if activation is None else activation)
        if unit == "%" or kind is QuantityKind.SHARE or self._known(unit, kind) is None:
            raise _WrongUnit(f"a number, or {kind.value} (units: {', '.join(_names(kind))})")
        amount = self._in_unit_of_file(number, unit, kind)
        if kind is not QuantityKind.SHARE_OF_MEMORY:
            return amount
        whole = finite_number(activation)
        if not whole:
            raise _WrongUnit("a share, where the layer has no activation")
        return amount / whole

    def _in_unit_of_file(self, number: Fraction, unit: str, kind: QuantityKind) -> Fraction:
        of_time = kind is QuantityKind.TIME
        key, own_unit = ("time_unit", self._form.time_unit) if of_time else ("memory.unit", self._form.memory_unit)
        own = own_unit(self._document)
        size, step = self._known(unit, kind), self._known(own, kind)
        assert size is not None
        if step is None:
            found = f"which is {own!r} here" if own else "which is missing here"
            raise _WrongUnit(f"a number, or one with a unit where {key} is one of {', '.join(_names(kind))}, {found}")
        return number * size / step

    def _known(self, unit: str, kind: QuantityKind) -> Fraction | None:
        return seconds_in(unit) if kind is QuantityKind.TIME else bytes_in(unit)


class _WrongUnit(Exception):
    """A unit that a key's value may not have; its text says what is allowed."""


def _part(number: Fraction, activation: object) -> Fraction:
    """Return a percentage of an activation as an amount.

    0 if the activation is no number, which is reported elsewhere.
    """
    whole = finite_number(activation)
    return number / 100 * (whole or 0)


def _names(kind: QuantityKind) -> Iterator[str]:
    """Yield the units, as text, that values of a kind may have."""
    if kind is QuantityKind.TIME:
        yield from TIMES
    elif kind is not QuantityKind.SHARE:
        yield from BYTES
    if kind in (QuantityKind.PART, QuantityKind.SHARE, QuantityKind.SHARE_OF_MEMORY):
        yield "%"
