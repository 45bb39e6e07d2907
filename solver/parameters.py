"""Parameters that tune a search: each is a field of a frozen class in its algorithm's module, with its unit and range.

They change how soon a solve is how good, never whether its claims are right. `docs/parameters.md` lists all of them;
`python -m benchmarks.tune` searches for better ones.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any, TypeVar

_Class = TypeVar("_Class", bound=type)
_KEY = "tuned"
# By the names of class and field, with a dot between; for processes that try other values.
_overridden: dict[str, Any] = {}


@dataclass(frozen=True)
class Tuned:
    """Meaning of one parameter: its unit, the range that makes sense, and the experiment that gave the default.

    `experiment` is None where the default was chosen by judgement and never measured alone.
    """

    unit: str
    low: float
    high: float
    experiment: str | None


def tuned(default: Any, unit: str, low: float, high: float, experiment: str | None = None) -> Any:
    """A field of a parameter class; for a tuple unit and range are those of its entries."""
    return field(default=default, metadata={_KEY: Tuned(unit, low, high, experiment)})


def tunable(of: _Class) -> _Class:
    """A class with tuned fields, before it becomes a dataclass: the values of `override` replace its defaults."""
    for name, one in vars(of).items():
        key = f"{of.__name__}.{name}"
        if key in _overridden:
            one.default = _overridden[key]
    return of


def override(values: Mapping[str, Any]) -> None:
    """Other defaults in this process, by `CLASS.FIELD`; before the modules of these classes are imported.

    Defaults are read when a module is imported, by compiled code too, so that a later call would change some of them.
    """
    _overridden.update(values)


def tuned_fields(of: type) -> dict[str, tuple[Any, Tuned]]:
    """Defaults and meanings of the tuned fields of a class, by name, in their order; empty where it has none."""
    if not is_dataclass(of):
        return {}
    return {one.name: (one.default, one.metadata[_KEY]) for one in fields(of) if _KEY in one.metadata}


def parameter_classes(package: str) -> Iterator[type]:
    """All classes of a package with tuned fields, in the order of their modules; imports the whole package."""
    root = importlib.import_module(package)
    for module in sorted(one.name for one in pkgutil.walk_packages(root.__path__, f"{root.__name__}.")):
        for found in vars(importlib.import_module(module)).values():
            if isinstance(found, type) and found.__module__ == module and tuned_fields(found):
                yield found
