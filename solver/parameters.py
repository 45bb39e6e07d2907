"""Parameters that tune a search: each is a field of a frozen class in its algorithm's module, with its unit and range.

They change the quality of a solve after a given time, never the truth of its claims. `docs/parameters.md` lists all of
them; `python -m benchmarks.tune` searches for better ones.
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
    """Meaning of one parameter: its unit, its sensible range, and the experiment that gave the default.

    `experiment` is None if the default was chosen by judgement and never measured alone. `low` and `high` are the ends
    of the range.
    """

    unit: str
    low: float
    high: float
    experiment: str | None


def tuned(default: Any, unit: str, low: float, high: float, experiment: str | None = None) -> Any:
    """Return the dataclass field of a parameter with this default, unit, and sensible range from `low` to `high`.

    For a tuple, unit and range are those of its entries. `experiment` describes the measurement that gave the default;
    None if it was chosen by judgement.
    """
    return field(default=default, metadata={_KEY: Tuned(unit, low, high, experiment)})


def tunable(cls: _Class) -> _Class:
    """Class decorator, below `@dataclass`, that lets `override` replace the defaults of a class's tuned fields."""
    for name, one in vars(cls).items():
        key = f"{cls.__name__}.{name}"
        if key in _overridden:
            one.default = _overridden[key]
    return cls


def override(values: Mapping[str, Any]) -> None:
    """Set other defaults in this process: `values` by `CLASS.FIELD`; call it before the classes' modules are imported.

    Defaults are read when a module is imported, also by compiled code, so that a later call would change only some of
    them. Names that no tuned field has are ignored.
    """
    _overridden.update(values)


def tuned_fields(cls: type) -> dict[str, tuple[Any, Tuned]]:
    """Return (default, meaning) of a class's tuned fields by name, in their order; empty if it has none."""
    if not is_dataclass(cls):
        return {}
    return {one.name: (one.default, one.metadata[_KEY]) for one in fields(cls) if _KEY in one.metadata}


def parameter_classes(package: str) -> Iterator[type]:
    """Yield all classes of a package with tuned fields, in the order of their modules.

    Modules are sorted by name, classes of one in the order of its text. Imports the whole package.
    """
    root = importlib.import_module(package)
    for module in sorted(one.name for one in pkgutil.walk_packages(root.__path__, f"{root.__name__}.")):
        for found in vars(importlib.import_module(module)).values():
            if isinstance(found, type) and found.__module__ == module and tuned_fields(found):
                yield found
