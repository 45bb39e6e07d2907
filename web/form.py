"""The form of a problem: fields described by the schema of problem files, and their values in a document."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any, Literal, get_args, get_origin

from pydantic.fields import FieldInfo

from pipesched.files.features.catalogue import FEATURES
from pipesched.files.problems.schema import MemorySection, ProblemFile, Times
from pipesched.problem.objective import objectives
from pipesched.problem.placement import PLACEMENTS

_OF_FEATURES = tuple(key for feature in FEATURES for key in feature.in_form)
_GROUPS: tuple[tuple[str, str, type[Any], tuple[str, ...]], ...] = (
    ("Pipeline", "", ProblemFile, ("name", "devices", "microbatches", "placement", "chunks", "objective")),
    (
        "Times",
        "times.",
        Times,
        ("forward", "backward", "weight", "fused", "transfer", "overlapped"),
    ),
    ("Memory", "memory.", MemorySection, ("capacity", "static", "activation", "freed_by_backward")),
    ("More", "", ProblemFile, ("time_unit", *_OF_FEATURES)),
    ("", "memory.", MemorySection, ("unit",)),
)
# Transfers within and between nodes, in place of one time for all; in a plan file `transfer` is no key of `times`.
_TRANSFER = "times.transfer"
_OF_NODES = (
    ("intra_node", "transfer within a node", "in place of transfer: between two devices of one node"),
    ("inter_node", "transfer between nodes", "between devices of two nodes"),
    ("nodes", "node of each device", "such as 0, 0, 1, 1"),
)
_NODE_PATHS = tuple(f"{_TRANSFER}.{key}" for key, _, _ in _OF_NODES)
_CHOICES = {"objective": [one.name for one in objectives() if one.passes is None]} | {
    key: [*get_args(annotation)]
    for key in _OF_FEATURES
    if get_origin(annotation := ProblemFile.model_fields[key].annotation) is Literal
}
_SUGGESTIONS = {"placement": list(PLACEMENTS)}
# Fields whose value is a word; all others hold numbers.
_WORDS = frozenset({"name", "placement", "time_unit", "memory.unit", *_CHOICES})
_OF_PLANS = frozenset({"name", "devices", "microbatches", "placement", "chunks", "objective", "time_unit"}) | {
    "memory.capacity",
    "memory.unit",
    _TRANSFER,
    *_NODE_PATHS,
}
_NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?", re.ASCII)
_PLAIN_WORD = re.compile(r"[A-Za-z][A-Za-z0-9_-]*", re.ASCII)
_NOT_PLAIN = frozenset({"true", "false", "null", "yes", "no", "on", "off"})


def groups() -> list[dict[str, object]]:
    """Return the form's groups of fields in order, each a `title` (may be empty) and `fields`.

    A field has `path`, `label`, `hint`, `choices` (None: any value), `suggestions` (None: none), `number` (True if it
    takes numbers) and `default`, text or None.
    """
    found = list[dict[str, object]]()
    for title, prefix, section, keys in _GROUPS:
        fields = [one for key in keys for one in _fields(prefix + key, key, section.model_fields[key])]
        found.append({"title": title, "fields": fields})
    return found


def _fields(path: str, key: str, info: FieldInfo) -> Iterator[dict[str, object]]:
    """Yield the field of a key; for transfers, the fields of transfers by node follow."""
    label = path.replace(".", " ") if path == "memory.unit" else key.replace("_", " ")
    yield _field(path, label, info.description or "", info)
    for inner, (_, name, hint) in zip(_NODE_PATHS, _OF_NODES, strict=True) if path == _TRANSFER else ():
        yield _field(inner, name, hint)


def _field(path: str, label: str, hint: str, info: FieldInfo | None = None) -> dict[str, object]:
    return {
        "path": path,
        "label": label,
        "hint": hint,
        "choices": _CHOICES.get(path),
        "suggestions": _SUGGESTIONS.get(path),
        "number": path not in _WORDS,
        "default": info.default if info is not None and isinstance(info.default, str) and info.default else None,
    }


def paths() -> frozenset[str]:
    """Return the key paths of all fields."""
    return frozenset(prefix + key for _, prefix, _, keys in _GROUPS for key in keys).union(_NODE_PATHS)


def values(document: object, plan: bool = False) -> dict[str, str | None]:
    """Return the value of each field that a document gives, as a person types it.

    None for a value that no field can show. A field that the document does not give has no entry. With `plan` the
    document is a plan file, and fields that such a file does not have are None.
    """
    found: dict[str, str | None] = dict.fromkeys(paths() - _OF_PLANS) if plan else {}
    for path in sorted(_OF_PLANS if plan else paths()):
        value = _at(document, key_path(path, plan))
        by_node = path == _TRANSFER and isinstance(value, Mapping) and value.keys() <= {key for key, _, _ in _OF_NODES}
        if value is not None and not by_node:
            found[path] = _typed(value)
    return found


def is_transfer(path: str) -> bool:
    """Return True for the fields of transfer times: one time for all, and those by nodes, which replace it.

    `path` is the field's key path in a problem file, such as `times.transfer` or `times.transfer.inter_node`, even for
    a plan file, in which these keys are not in `times`.
    """
    return path == _TRANSFER or path in _NODE_PATHS


def key_path(path: str, plan: bool) -> str:
    """Return the path of a field's key in a file; in a plan file (`plan`) transfers are not in `times`."""
    return path.removeprefix("times.") if plan and is_transfer(path) else path


def edit(document: object, path: str, value: str | None, plan: bool) -> tuple[str, str | None]:
    """Return the change of a file's text that an edit of a form field means: the key path, and the YAML value to set.

    `path` is the path of the field, `value` its new value as YAML on one line (None: removed), `document` the content
    of the file, and `plan` is True for a plan file. The returned value is None if the key is to be removed. A transfer
    time by nodes replaces one for all transfers, as a mapping.
    """
    where = key_path(path, plan)
    outer, _, key = where.rpartition(".")
    present = _at(document, outer)
    if path in _NODE_PATHS and present is not None and not isinstance(present, Mapping):
        return outer, str(present) if value is None else f"{{{key}: {value}}}"
    return where, value


def _at(document: object, path: str) -> object:
    value: object = document
    for key in path.split("."):
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def yaml_value(path: str, typed: str) -> str:
    """Return the text typed into the field of key `path` as YAML on one line.

    A number, a list (`1, 2` or `[1, 2]`), a word, or a quoted text; keys that take words have no numbers.
    """
    typed = typed.strip()
    if path in _WORDS and path != "placement":
        return _scalar(typed, numbers=False)
    inner = typed.removeprefix("[").removesuffix("]")
    if typed.startswith("[") or "," in typed:
        return "[" + ", ".join(_scalar(one.strip()) for one in inner.split(",") if one.strip()) + "]"
    return _scalar(typed)


def _scalar(text: str, numbers: bool = True) -> str:
    if numbers and _NUMBER.fullmatch(text):
        return text
    if _PLAIN_WORD.fullmatch(text) and text.lower() not in _NOT_PLAIN:
        return text
    return '"' + "".join(_quoted(character) for character in text) + '"'


def _quoted(character: str) -> str:
    """Return a character as it is written within double quotes of YAML."""
    if character in '"\\':
        return "\\" + character
    return character if character.isprintable() else f"\\U{ord(character):08x}"


def _typed(value: object) -> str | None:
    if isinstance(value, list):
        entries = [_typed(entry) for entry in value]
        simple = all(entry is not None and not isinstance(one, list) for entry, one in zip(entries, value, strict=True))
        return ", ".join(map(str, entries)) if simple else None
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, str | int | float | Decimal) else None
