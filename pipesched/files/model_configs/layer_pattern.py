"""Layers by number: Megatron's lists of 0 and 1 made by + and *, and a period in place of a list that is one."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from pipesched.errors import BadInput
from pipesched.files.limits import MOST_LAYERS


def check_layers(layers: int, source: str) -> None:
    """Raise `BadInput` for more layers than a plan may have, before lists with an entry for each are made.

    `source` names the configuration in messages.
    """
    if layers > MOST_LAYERS:
        raise BadInput(f"{source}: number of layers: found {layers}; allowed: up to {MOST_LAYERS}")


def listed(value: object) -> list[int] | None:
    """Return the whole numbers of a list, or of text such as `([1]*5+[0])*4` that makes one; None for anything else.

    Megatron evaluates such text as Python. At most `MOST_LAYERS` + 1 entries are made.
    """
    try:
        found = _value(ast.parse(value.strip(), mode="eval").body) if isinstance(value, str) else value
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    if not isinstance(found, list):
        return None
    numbers = [int(one) for one in map(str, map(_whole, found)) if one.isdecimal()]
    return numbers if len(numbers) == len(found) else None


def _whole(entry: object) -> object:
    """Return True and False as 1 and 0, which Megatron takes them for, and all else as it is."""
    return int(entry) if isinstance(entry, bool) else entry


def _value(node: ast.expr) -> list[object] | int:
    """Return the list or number of an expression of lists, + and *; ValueError for any other.

    Lists are cut off after `MOST_LAYERS` + 1 entries, which is too many; an entry that is no constant becomes None.
    """
    match node:
        case ast.List(elts=elements):
            return [one.value if isinstance(one, ast.Constant) else None for one in elements]
        case ast.Constant(value=int(number)):
            return number
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            first, second = _value(left), _value(right)
            if isinstance(first, list) and isinstance(second, list):
                return (first + second)[: MOST_LAYERS + 1]
        case ast.BinOp(left=left, op=ast.Mult(), right=right):
            match _value(left), _value(right):
                case (list() as entries, int(times)) | (int(times), list() as entries):
                    return (entries * min(times, MOST_LAYERS + 1))[: MOST_LAYERS + 1]
    raise ValueError


def placed(numbers: Sequence[int], layers: int) -> int | list[int] | None:
    """Return these layers, numbered from 0 and ascending, in the form of a plan file: a period or a list.

    A period n means the layers n - 1, 2 n - 1 and so on. None if there are none. `layers` is the number of all layers.
    """
    if not numbers:
        return None
    every = numbers[0] + 1
    return every if [*numbers] == [*range(numbers[0], layers, every)] else [*numbers]
