"""Values of a swept field: lists, ranges, multiples of the number of devices, and named groups of settings."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from numbers import Rational

from pipesched.errors import BadInput
from pipesched.files.exact_numbers import as_decimal, read_yaml
from pipesched.files.schema_errors import shown

MOST_CELLS = 10_000

_NUMBER = r"(\d{1,12}(?:\.\d{0,20})?|\.\d{1,20})"
_MULTIPLE = re.compile(rf"{_NUMBER}p", re.ASCII)
_RANGE = re.compile(rf"{_NUMBER}(p?)\.\.{_NUMBER}(p?)(?::(x?){_NUMBER}(p?))?", re.ASCII)
_ALLOWED = "a list of values, a range such as 4..16, 4..16:2 or 4..64:x2, or groups of settings by name"


@dataclass(frozen=True)
class OfDevices:
    """The multiple `factor` of the cell's number of devices, written `0.5p`."""

    factor: Fraction

    def __str__(self) -> str:
        return f"{as_decimal(self.factor)}p"


@dataclass(frozen=True)
class Value:
    """One value of an axis: its name in tables (`label`), and the fields that it sets, as (key path, value).

    A value is as read from the file, or `OfDevices`. There is one field, or those of a group of settings.
    """

    label: str
    settings: tuple[tuple[str, object], ...]


def values_of(field: str, given: object, where: str) -> tuple[Value, ...]:
    """Return the values of a field given in a `sweep` section: a list with ranges, or groups of settings by name.

    They are in the order given; ranges have their upper end if a step meets it. `BadInput`, which names the entry
    `where`, for no value, one given twice, more than `MOST_CELLS`, or another form.
    """
    if isinstance(given, Mapping):
        found = [_group(str(name), settings, f"{where}.{name}") for name, settings in given.items()]
    else:
        found = [Value(label(one), ((field, one),)) for one in _listed(given, where)]
    if not found:
        raise BadInput(f"{where}: found no value; allowed: {_ALLOWED}")
    twice = next((one.label for n, one in enumerate(found) if one.label in {o.label for o in found[:n]}), None)
    if twice is not None:
        raise BadInput(f"{where}: the value {twice} appears twice")
    return tuple(found)


def values_from_text(field: str, text: str, where: str) -> tuple[Value, ...]:
    """Return the values of a field given by the text of an option: a range, or values separated by commas.

    `where` names the option in messages. `BadInput` for text that is no YAML, no value, one given twice, more than
    `MOST_CELLS`, or another form.
    """
    given = read_yaml(f"[{text}]", where)
    return values_of(field, given, where)


def label(value: object) -> str:
    """Return a value as text for tables: lists in brackets, mappings in braces, `none` for None, `true` for True.

    Numbers are written in full, without an exponent.
    """
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(label, value)) + "]"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key}: {label(one)}" for key, one in value.items()) + "}"
    if isinstance(value, bool):
        return str(value).lower()
    if value is None:
        return "none"
    return format(value, "f") if isinstance(value, Decimal) else str(value)


def resolved(value: object, devices: object) -> object:
    """Return the value to put into the file: an `OfDevices` times the number of devices, any other unchanged.

    The product is an int, or a Decimal if it is not whole. `BadInput` for an `OfDevices` if `devices` is no int.
    """
    if not isinstance(value, OfDevices):
        return value
    if not isinstance(devices, int):
        raise BadInput(f"found {value} with devices {shown(devices)}; allowed: with a whole number of devices")
    return as_decimal(value.factor * devices)


def _group(name: str, settings: object, where: str) -> Value:
    if not isinstance(settings, Mapping) or not settings:
        raise BadInput(f"{where}: found {shown(settings)}; allowed: the fields that it sets, each with a value")
    return Value(name, tuple((str(path), _one(value)) for path, value in settings.items()))


def _listed(given: object, where: str) -> Iterator[object]:
    """Yield each value of a list, with ranges in it expanded; what is no list is one value.

    `BadInput`, which begins with `where`, for too many.
    """
    number = 0
    for entry in given if isinstance(given, list | tuple) else [given]:
        spread = _range(entry, where) if isinstance(entry, str) and ".." in entry else [_one(entry)]
        for value in spread:
            number += 1
            if number > MOST_CELLS:
                raise BadInput(f"{where}: found more than {MOST_CELLS} values; allowed: up to so many")
            yield value


def _one(entry: object) -> object:
    multiple = _MULTIPLE.fullmatch(entry) if isinstance(entry, str) else None
    return entry if multiple is None else OfDevices(Fraction(multiple[1]))


def _range(text: str, where: str) -> Iterator[object]:
    found = _RANGE.fullmatch(text)
    if found is None:
        raise BadInput(f"{where}: found {text!r}; allowed: {_ALLOWED}")
    low, high = Fraction(found[1]), Fraction(found[3])
    grows, step = found[5] == "x", Fraction(found[6] or 1)
    units = {bool(unit) for unit, given in ((found[2], 1), (found[4], 1), (found[7], found[6] and not grows)) if given}
    if len(units) > 1:
        raise BadInput(f"{where}: found {text!r}; allowed: p, the number of devices, after all of its numbers or none")
    if low > high or step <= (1 if grows else 0) or (grows and low == 0):
        allowed = "the lesser first, with a step above 0, or above 1 after x and from above 0"
        raise BadInput(f"{where}: found {text!r}; allowed: {allowed}")
    return _spread(low, high, step, grows, OfDevices if units == {True} else as_decimal)


def _spread(low: Fraction, high: Fraction, step: Fraction, grows: bool, made: object) -> Iterator[object]:
    assert callable(made)
    while low <= high:
        yield made(low)
        low = low * step if grows else low + step


def as_number(value: object) -> Fraction | None:
    """Return a value of an axis as an exact number; None if it is none, such as text, True or an `OfDevices`."""
    if isinstance(value, Rational | Decimal) and not isinstance(value, bool):
        return Fraction(value)
    return None
