"""Modules imported by the first test that uses them: every worker collects all tests, and loading PyTorch takes seconds."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest


class _Later:
    """A module whose attributes are those of the imported one, also for `monkeypatch`."""

    __slots__ = ("_name",)  # without a `__dict__`, to which `monkeypatch` would restore

    def __init__(self, name: str) -> None:
        object.__setattr__(self, "_name", name)

    def __getattr__(self, attribute: str) -> Any:
        if attribute.startswith("__") or attribute == "_mock_name":  # pytest asks everything in a module for these
            raise AttributeError(attribute)
        return getattr(import_module(self._name), attribute)

    def __setattr__(self, attribute: str, value: object) -> None:
        setattr(import_module(self._name), attribute, value)

    def __delattr__(self, attribute: str) -> None:
        delattr(import_module(self._name), attribute)


def needs(*names: str) -> None:
    """Skip the module that calls this at its top where one of these modules is not installed; imports none."""
    for name in names:
        if not is_installed(name):
            pytest.skip(f"{name} is not installed", allow_module_level=True)


def later(name: str, *needed: str) -> Any:
    """The module of this name, imported when it is first used; skips the module that calls this as `needs` does."""
    needs(*needed or (name,))
    return _Later(name)


def is_installed(name: str) -> bool:
    """True if there is a file or folder for the module; neither it nor a package that it is in is imported."""
    top, *inner = name.split(".")
    spec = find_spec(top)
    if spec is None or not inner:
        return spec is not None
    places = [Path(folder, *inner) for folder in spec.submodule_search_locations or ()]
    return any(place.is_dir() or any(place.parent.glob(f"{place.name}.*")) for place in places)
