"""Changes of single keys in the text of a problem; everything else, including comments and layout, is preserved."""

from __future__ import annotations

import re
from collections.abc import Sequence

import yaml

from pipesched.errors import BadInput

_ALIAS = re.compile(r"\s*\*[^\s,\]}]+")
# A comment after a value, to the end of its line.
_END_OF_LINE = re.compile(r"[ \t]*(#[^\n]*)?(\n|\Z)")


def with_value(text: str, path: str, value: str | None) -> str:
    """Return the text with another value (YAML on one line) at a key path; None removes the key.

    With the key, sections go that would then be empty; sections that are missing are added. `BadInput` if the text is
    no YAML of keys and values, or the key's section cannot be changed automatically.
    """
    text = text if not text or text.endswith("\n") else text + "\n"
    *sections, key = keys = path.split(".")
    mapping = _root(text)
    if mapping is None:
        return text if value is None else text + _new_lines(keys, value)
    alone: tuple[yaml.MappingNode, str] | None = None  # the outermost section that has nothing but this key
    for at, section in enumerate(sections):
        inner = _value_of(mapping, section)
        if inner is None or (isinstance(inner, yaml.ScalarNode) and not inner.value):
            return text if value is None else _set(text, mapping, section, _nested(keys[at + 1 :], value))
        if not isinstance(inner, yaml.MappingNode) or _is_alias(mapping, section):
            raise BadInput(f"{path}: `{section}` is written so that only its text can be edited")
        only = [entry.value for entry, _ in inner.value] == [keys[at + 1]]
        alone = (alone or (mapping, section)) if only else None
        mapping = inner
    if value is None and alone is not None:
        return _set(text, *alone, None)
    return _set(text, mapping, key, value)


def _nested(keys: Sequence[str], value: str) -> str:
    """Return a YAML value inside mappings with the keys, the outermost first, on one line."""
    for key in reversed(keys):
        value = f"{{{key}: {value}}}"
    return value


def _root(text: str) -> yaml.MappingNode | None:
    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except (yaml.YAMLError, ValueError, RecursionError):
        raise BadInput("the text is not YAML, so that only the text can be edited") from None
    if root is not None and not isinstance(root, yaml.MappingNode):
        raise BadInput("the text has no keys and values, so that only the text can be edited")
    return root


def _new_lines(keys: Sequence[str], value: str) -> str:
    first, *inner = keys
    return f"{first}:\n  {inner[0]}: {_nested(inner[1:], value)}\n" if inner else f"{first}: {value}\n"


def _entry(mapping: yaml.MappingNode, key: str) -> tuple[yaml.Node, yaml.Node] | None:
    return next(((k, v) for k, v in mapping.value if isinstance(k, yaml.ScalarNode) and k.value == key), None)


def _value_of(mapping: yaml.MappingNode, key: str) -> yaml.Node | None:
    found = _entry(mapping, key)
    return found[1] if found else None


def _is_alias(mapping: yaml.MappingNode, key: str) -> bool:
    """Return True if the value of `key` in a mapping is given by reference to another place, where its node then is."""
    found = _entry(mapping, key)
    return found is not None and found[1].start_mark.index < found[0].end_mark.index


def _set(text: str, mapping: yaml.MappingNode, key: str, value: str | None) -> str:
    found = _entry(mapping, key)
    if found is None:
        return text if value is None else _inserted(text, mapping, f"{key}: {value}")
    start, end = found[0].start_mark.index, _end(text, *found)
    if value is not None:
        colon = text.index(":", found[0].end_mark.index) + 1
        return f"{text[:colon]} {value}{text[end:]}"
    return _removed_from_flow(text, start, end) if mapping.flow_style else _removed_lines(text, start, end)


def _end(text: str, key: yaml.Node, value: yaml.Node) -> int:
    """Return the offset in the text at which an entry ends: after the last part of its value that is no comment."""
    if value.start_mark.index < key.end_mark.index:
        colon = text.index(":", key.end_mark.index) + 1
        alias = _ALIAS.match(text, colon)
        return alias.end() if alias else colon
    last = value
    while isinstance(last, yaml.CollectionNode) and not last.flow_style and last.value:
        inner = last.value[-1]
        if isinstance(inner, tuple):
            return _end(text, *inner)
        last = inner
    plain = isinstance(last, yaml.ScalarNode) and not last.value and not last.style
    # The mark of an empty value is that of the next token.
    return text.index(":", key.end_mark.index) + 1 if plain else len(text[: last.end_mark.index].rstrip())


def _inserted(text: str, mapping: yaml.MappingNode, entry: str) -> str:
    if mapping.flow_style:
        at = mapping.end_mark.index - 1
        before = text[:at].rstrip()
        comma = "" if before.endswith(("{", ",")) else ", "
        return f"{before}{comma}{entry}{text[at:]}"
    key, value = mapping.value[-1]
    end_of_line = _END_OF_LINE.match(text, _end(text, key, value))
    at = end_of_line.end() if end_of_line else len(text)
    before = text[:at] if text[:at].endswith("\n") else text[:at] + "\n"
    return f"{before}{' ' * mapping.value[0][0].start_mark.column}{entry}\n{text[at:]}"


def _removed_lines(text: str, start: int, end: int) -> str:
    end_of_line = _END_OF_LINE.match(text, end)
    return text[: text.rfind("\n", 0, start) + 1] + text[end_of_line.end() if end_of_line else end :]


def _removed_from_flow(text: str, start: int, end: int) -> str:
    before, after = text[:start].rstrip(), text[end:].lstrip()
    if after.startswith(","):
        return text[:start] + after[1:].lstrip()
    return before.removesuffix(",") + after
