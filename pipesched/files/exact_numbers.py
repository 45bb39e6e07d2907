"""Exact numbers of files: decimals are read as the user wrote them, never as floats, and written without loss."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from decimal import Decimal
from fractions import Fraction
from math import gcd, lcm

import simplejson
import yaml

from pipesched.errors import BadInput


def common_step(numbers: Iterable[Fraction]) -> Fraction:
    """Return the largest fraction, above 0, of which all the numbers are multiples; 1 if they are all zero."""
    values = [abs(x) for x in numbers if x]
    if not values:
        return Fraction(1)
    denominator = lcm(*(x.denominator for x in values))
    return Fraction(gcd(*(int(x * denominator) for x in values)), denominator)


def as_decimal(number: Fraction) -> int | Decimal:
    """Return a fraction as an exact decimal, an int where it is whole.

    ValueError if it has no finite decimal form, or one of more than 400 digits after the point.
    """
    if number.denominator == 1:
        return int(number)
    exponent = 0
    while (number * 10**exponent).denominator != 1:
        exponent += 1
        if exponent > 400:
            raise ValueError(f"{number} has no finite decimal form")
    return Decimal(int(number * 10**exponent)).scaleb(-exponent)


def as_number(number: Fraction) -> int | Decimal | str:
    """Return a fraction as a file writes it: an exact decimal, or text such as `5/3` if it has none."""
    try:
        return as_decimal(number)
    except ValueError:
        return str(number)


def as_numbers(values: Sequence[int | None], step: Fraction) -> object:
    """Return `values`, each a number of `step`s, in the form in which a file has them, as exact numbers.

    That is one number if all are equal, else a list in their order. Entries that are None are left out.
    """
    found = [as_number(value * step) for value in values if value is not None]
    return found[0] if len(set(found)) == 1 else found


# Numbers of thousands of digits, dates that do not exist, brackets thousands deep.
_UNREADABLE = (ValueError, ArithmeticError, RecursionError)


def _unreadable(source: str, error: Exception) -> BadInput:
    """Return the error for well-formed text beyond Python's limits: nested too deep, or with a number too long.

    `source` names the text in the message.
    """
    reason = str(error)
    if isinstance(error, RecursionError):
        reason = "found brackets or indents too deep; allowed: some hundred levels"
    elif "integer string conversion" in reason:  # Python's advice is for programmers
        reason = "found a number of thousands of digits; allowed: at most 100 digits"
    return BadInput(f"{source}: cannot be read: {reason}")


# Values a YAML file may hold, each counted as often as it is referred to: far more than any problem has.
MOST_NODES = 100_000


class _ExactLoader(yaml.SafeLoader):
    """A YAML loader that reads decimals exactly (0.1 is one tenth).

    A key given twice is refused, or with `repeated_keys` has the last of its values.
    """

    repeated_keys = False

    def __init__(self, stream: str) -> None:
        super().__init__(stream)
        self._sizes: dict[int, int] = {}  # of the nodes that are complete
        self._nodes = 0

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        """Return the next YAML node; None at the end of the text.

        `ConstructorError` for a value that refers to itself, or more than `MOST_NODES` values. Values are counted with
        references expanded, before any is built, so that a small file cannot fill the memory.
        """
        mark, before = self.peek_event().start_mark, self._nodes  # type: ignore[no-untyped-call]
        node = super().compose_node(parent, index)
        if node is None:
            return node
        referred = mark is not node.start_mark
        if referred and id(node) not in self._sizes:
            raise yaml.constructor.ConstructorError(None, None, "a value refers to itself", mark)
        self._nodes += self._sizes[id(node)] if referred else 1
        self._sizes.setdefault(id(node), self._nodes - before)
        if self._nodes > MOST_NODES:
            text = f"found more than {MOST_NODES} values, references counted; allowed: up to so many"
            raise yaml.constructor.ConstructorError(None, None, text, mark)
        return node

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, object]:
        seen: set[object] = set()
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise yaml.constructor.ConstructorError(None, None, "a key must be a word", key.start_mark)
            if key.value in seen and not self.repeated_keys:
                raise yaml.constructor.ConstructorError(
                    None, None, f"the key {key.value!r} appears twice", key.start_mark
                )
            seen.add(key.value)
        return super().construct_mapping(node, deep)


class _RepeatedKeysLoader(_ExactLoader):
    """A YAML loader for other programs' files, in which the last value of a repeated key counts."""

    repeated_keys = True


def _construct_decimal(loader: yaml.SafeLoader, node: yaml.ScalarNode) -> object:
    try:
        return Decimal(loader.construct_scalar(node).replace("_", ""))
    except ArithmeticError:
        return loader.construct_yaml_float(node)  # .inf and .nan, which no field allows


# YAML 1.1 reads 010 as eight and 1:30 as ninety, which no number field allows, and on, off, yes and no as true and
# false; here they are text.
_INTEGER, _BOOLEAN = "tag:yaml.org,2002:int", "tag:yaml.org,2002:bool"
_ExactLoader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag not in (_INTEGER, _BOOLEAN)]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_ExactLoader.add_implicit_resolver(_BOOLEAN, re.compile(r"^(true|True|TRUE|false|False|FALSE)$"), list("tTfF"))
_ExactLoader.add_implicit_resolver(_INTEGER, re.compile(r"^[-+]?(0|[1-9][0-9_]*)$"), list("-+0123456789"))
_ExactLoader.add_constructor("tag:yaml.org,2002:float", _construct_decimal)
# YAML 1.1 wants a dot and a signed exponent in a float; users write 1e3 and 1.5e3 all the same.
_ExactLoader.add_implicit_resolver(
    "tag:yaml.org,2002:float", re.compile(r"^[-+]?(\d+\.?\d*|\.\d+)[eE][-+]?\d+$"), list("-+.0123456789")
)


def read_yaml(text: str, source: str, *, repeated_keys: bool = False) -> object:
    """Parse a YAML document with exact decimals; `BadInput` names the line of a syntax error.

    Numbers are int, or Decimal where they have a point or an exponent; None for empty text. A key given twice is
    refused, or with `repeated_keys` has the last of its values. `source` names the text in messages.
    """
    try:
        return yaml.load(text, Loader=_RepeatedKeysLoader if repeated_keys else _ExactLoader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f" line {mark.line + 1}, column {mark.column + 1}:" if mark else ""
        reason = " ".join(str(getattr(error, "problem", None) or error).split())
        if reason == "but found another document":
            reason = "found a second document; allowed: one in a file"
        raise BadInput(f"{source}:{where} not YAML: {reason}") from None
    except _UNREADABLE as error:
        raise _unreadable(source, error) from None


def read_json(text: str, source: str) -> object:
    """Parse a JSON document with exact decimals; `BadInput` names the line of a syntax error.

    A key given twice is refused. `source` names the text in messages; numbers are int, or Decimal where they have a
    point or an exponent.
    """

    def once(pairs: list[tuple[str, object]]) -> dict[str, object]:
        twice = [key for key, times in Counter(key for key, _ in pairs).items() if times > 1]
        if twice:
            raise BadInput(f"{source}: the key {twice[0]!r} appears twice")
        return dict(pairs)

    try:
        return simplejson.loads(text, use_decimal=True, object_pairs_hook=once)
    except simplejson.JSONDecodeError as error:
        raise BadInput(f"{source}: line {error.lineno}, column {error.colno}: not JSON: {error.msg}") from None
    except _UNREADABLE as error:
        raise _unreadable(source, error) from None


def write_json(document: object) -> str:
    """Return a document as JSON text that ends with a newline, with decimals written exactly; no fractions."""
    return simplejson.dumps(document, use_decimal=True, indent=1) + "\n"
