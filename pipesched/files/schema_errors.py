"""Mistakes in files as one line each, from pydantic's validation errors: key path, value found, what is allowed."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from fractions import Fraction
from itertools import islice
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from pipesched.errors import BadInput, did_you_mean
from pipesched.files.fields.field import WrongEntry

Model = TypeVar("Model", bound=BaseModel)

# Characters of a value that a message quotes, and so no more entries of one than that.
_QUOTED = 60


def parse_model(
    model: type[Model], document: object, required: Sequence[str]
) -> tuple[Model, list[str], frozenset[str]]:
    """Return a document as a pydantic model whose fields are all optional, with its mistakes.

    Returns the model without the wrong values, a line for each mistake, and the key paths of the wrong values, so that
    rules over several keys can still be checked on the others. In a path an index of a list is a number with dots
    (`layers.0.name`). `required` lists the key paths that must be given; one that is missing is a mistake, but no wrong
    value. `BadInput` for a document without keys.
    """
    if not isinstance(document, dict):
        raise BadInput(f"found {shown(document)}; allowed: keys and values, beginning with {required[0]}: ...")
    entries: dict[str, Any] = with_text_keys(document)
    found = [f"{path}: missing; it is required" for path in required if _is_missing(entries, path)]
    try:
        return model.model_validate(entries), found, frozenset()
    except ValidationError as error:
        problems = error.errors()
    good = copy.deepcopy(entries)
    for problem in problems:
        path = tuple(f"[{key}]" if isinstance(key, int) else key for key in problem["loc"])
        wrong: list[WrongEntry] | None = problem.get("ctx", {}).get("entries")
        if wrong is None:
            found.append(_line(model, path, problem["type"], problem["msg"], problem["input"]))
        else:
            found += [f"{_place(path)}{at}: found {shown(one)}; allowed: {allowed}" for at, one, allowed in wrong]
        _remove(good, problem["loc"])
    return model.model_validate(good), found, frozenset(".".join(map(str, p["loc"])) for p in problems)


def shown(value: object) -> str:
    """Return a value as messages quote it: as the user wrote it, cut off after 60 characters.

    Of a mapping only the keys are shown; None is `nothing`.
    """
    text = " ".join(str(value).split()) if not isinstance(value, str | list | dict | bool) else repr(value)
    if isinstance(value, list):
        text = "[" + ", ".join(map(shown, value[:_QUOTED])) + "]"
    if isinstance(value, dict):
        text = "keys " + ", ".join(map(str, islice(value, _QUOTED)))
    if isinstance(value, bool):
        text = str(value).lower()
    if value is None:
        text = "nothing"
    return text if len(text) <= _QUOTED else text[: _QUOTED - 3] + "..."


def shown_amount(amount: Fraction, unit: str) -> str:
    """Return an amount of memory with its unit as messages quote it, such as `1.5 GiB` or `1 activation`."""
    number = shown(int(amount) if amount.denominator == 1 else float(amount))
    return f"{number} {'activation' if (number, unit) == ('1', 'activations') else unit}".rstrip()


def _line(model: type[BaseModel], path: tuple[str, ...], kind: str, message: str, value: object) -> str:
    where = _place(path)
    if kind == "extra_forbidden":
        known = _keys_at(model, path[:-1])
        return f"{where}: unknown key; allowed: {', '.join(known)}{did_you_mean(path[-1], known)}"
    if kind in ("model_type", "model_attributes_type", "dict_type"):
        return f"{where}: found {shown(value)}; allowed: the keys {', '.join(_keys_at(model, path))}"
    if kind == "list_type":
        entries = ", ".join(_keys_at(model, path))
        return f"{where}: found {shown(value)}; allowed: a list, each of its entries with the keys {entries}"
    suggestion = did_you_mean(value, message.split(", ")) if isinstance(value, str) else ""
    return f"{where}: found {shown(value)}; allowed: {message}{suggestion}"


def _place(path: tuple[str, ...]) -> str:
    """Return a key path as text for messages: `tasks.forward[0].time`."""
    return ".".join(path).replace(".[", "[")


def _keys_at(model: type[BaseModel], path: tuple[str, ...]) -> list[str]:
    """Return the names of the keys allowed in the section at a path of a model."""
    section: Any = model
    for key in path:
        if key.startswith("["):  # an entry of a list, whose type is that of all
            continue
        options = section.model_fields[key].annotation
        candidates = [inner for c in getattr(options, "__args__", (options,)) for inner in getattr(c, "__args__", (c,))]
        section = next(c for c in candidates if isinstance(c, type) and issubclass(c, BaseModel))
    return list(section.model_fields)


def with_text_keys(document: Any) -> Any:
    """Return the document with all keys as text; YAML reads keys such as `1:` and `true:` as other types."""
    if isinstance(document, list):
        return [with_text_keys(entry) for entry in document]
    if not isinstance(document, dict):
        return document
    return {key if isinstance(key, str) else shown(key): with_text_keys(value) for key, value in document.items()}


def _is_missing(document: dict[str, Any], path: str) -> bool:
    """Return True if the last key of a path is absent or null in a section that is there.

    Where the section itself is absent or wrong, that is the mistake to report.
    """
    *sections, key = path.split(".")
    here: object = document
    for section in sections:
        here = here.get(section) if isinstance(here, dict) else None
    return isinstance(here, dict) and here.get(key) is None


def _remove(document: dict[str, Any], path: tuple[str | int, ...]) -> None:
    """Remove the wrong value at a path of keys and list indices from a document, in place.

    A list entry becomes an empty section, so that the others keep their index.
    """
    here: Any = document
    for key in path[:-1]:
        here = here[key]
    if isinstance(here, list):
        here[int(path[-1])] = {}
    else:
        here.pop(path[-1], None)
