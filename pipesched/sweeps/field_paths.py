"""Key paths of problem and plan files: short names for some, and setting the field at a path."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from pipesched.errors import BadInput
from pipesched.files.schema_errors import shown

CAPACITY = "memory.capacity"

_OF_PROBLEMS = {
    "memory": CAPACITY,
    "transfer": "times.transfer",
    "offload": "memory.decide.offload",
    "recompute": "memory.decide.recompute",
}
_OF_PLANS = {"memory": CAPACITY, "recompute": "decide.recompute"}
_STEP = re.compile(r"([^.\[\]]+)|\[(\d{1,6})\]", re.ASCII)


def is_plan(document: object) -> bool:
    """Return True if a document is a plan file: a model made of layers."""
    return isinstance(document, Mapping) and ("layers" in document or "model" in document)


def full_path(field: str, document: Mapping[str, object]) -> str:
    """Return the key path of a field, for which short names may stand, by the document's kind of file.

    Short names are `memory`, `transfer`, `offload` and `recompute`, in plan files the first and last; `memory` is
    `memory.capacity`, or `hardware.memory` in a document with `hardware`. Any other field is its own path.
    """
    if field == "memory" and "hardware" in document:
        return "hardware.memory"
    return (_OF_PLANS if is_plan(document) else _OF_PROBLEMS).get(field, field)


def steps_of(path: str) -> list[str | int]:
    """Return the keys (str) and list indices (int, from 0) of a path such as `layers[2].forward`, in order.

    `BadInput` if it is no path.
    """
    steps: list[str | int] = [int(at) if at else key for key, at in _STEP.findall(path)]
    if not steps or isinstance(steps[0], int) or _written(steps) != path:
        raise BadInput(f"{path}: found no key path; allowed: keys with dots between, such as memory.capacity")
    return steps


def set_field(document: dict[str, Any], path: str, value: object) -> None:
    """Set the field of a document at a key path, in place; missing sections are created.

    `BadInput` if `path` is no key path, or leads through a value that has no such part; lists are not extended.
    """
    *sections, last = steps_of(path)
    here: Any = document
    for at, step in enumerate(sections):
        inner = _get(here, step, path)
        if inner is None:
            inner = here[step] = {}
        if not isinstance(inner, list if isinstance([*sections, last][at + 1], int) else dict):
            raise BadInput(f"{path}: found {shown(inner)} at {_written(sections[: at + 1])}, which has no such part")
        here = inner
    _get(here, last, path)
    here[last] = value


def without_field(document: Mapping[str, Any], path: str) -> dict[str, Any]:
    """Return a copy of the document without the field at a path of keys, which need not be there.

    Other sections are shared with the document. The path has no list indices.
    """
    key, _, inner = path.partition(".")
    kept = {name: value for name, value in document.items() if inner or name != key}
    if inner and isinstance(kept.get(key), Mapping):
        kept[key] = without_field(kept[key], inner)
    return kept


def _get(here: Any, step: str | int, path: str) -> Any:
    if isinstance(step, str):
        return here.get(step)
    if step >= len(here):
        raise BadInput(f"{path}: found a list of {len(here)}; allowed: [0] to [{len(here) - 1}]")
    return here[step]


def _written(steps: list[str | int]) -> str:
    return ".".join(f"[{step}]" if isinstance(step, int) else step for step in steps).replace(".[", "[")
