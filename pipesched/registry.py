"""Registries of plug-ins: the modules of a package are imported on first use, and register items by name."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from typing import Generic, Protocol, TypeVar

from pipesched.errors import BadInput, did_you_mean


class Named(Protocol):
    """An item of a registry: anything with a name."""

    @property
    def name(self) -> str: ...


Item = TypeVar("Item", bound=Named)


class Registry(Generic[Item]):
    """The items of one kind that the modules of a package register, by name.

    A module takes part by calling `register` when it is imported; the package's modules are imported on first use.
    """

    def __init__(self, package: str, noun: str, others: Mapping[str, str] | None = None) -> None:
        """Make a registry of the package's modules; `others` maps further names that users know to names of items.

        `noun` names the kind of item in messages.
        """
        self._package = package
        self._noun = noun
        self._others = others or {}
        self._items: dict[str, Item] = {}
        self._loaded = False

    def register(self, item: Item) -> Item:
        """Add an item and return it, so that it can be a decorator; ValueError if its name is taken."""
        if item.name in self._items:
            raise ValueError(f"two {self._noun}s are named {item.name!r}")
        self._items[item.name] = item
        return item

    def __iter__(self) -> Iterator[Item]:
        """Iterate over all items, sorted by name."""
        self._load()
        return iter(sorted(self._items.values(), key=lambda item: item.name))

    def __contains__(self, name: object) -> bool:
        """Return True if an item is registered by exactly this name."""
        self._load()
        return name in self._items

    def names(self) -> list[str]:
        return [item.name for item in self]

    def __getitem__(self, name: str) -> Item:
        """Return the item of a name or of a further name, in any case, with or without `-` and `_`; else `BadInput`."""
        self._load()
        if name not in self._items:
            spelt = {_plain(one): self._others.get(one, one) for one in (*self._items, *self._others)}
            name = spelt.get(_plain(name), name)
        if name not in self._items:
            known = ", ".join(self.names())
            raise BadInput(f"unknown {self._noun} {name!r}; known: {known}{did_you_mean(name, self._items)}")
        return self._items[name]

    def other_names(self, name: str) -> list[str]:
        """Return the other names (aliases) by which the item called `name` is found; empty for an unknown name."""
        return [other for other, own in self._others.items() if own == name]

    def alone(self, name: str) -> Item | None:
        """Return the item registered by the module of its name, without importing other modules; None if there is none.

        A module has the name of its item, with `_` for `-`.
        """
        module = f"{self._package}.{name.replace('-', '_')}"
        if name not in self._items and name.replace("-", "_").isidentifier() and find_spec(module) is not None:
            importlib.import_module(module)
        return self._items.get(name)

    def _load(self) -> None:
        if not self._loaded:
            self._loaded = True
            package = importlib.import_module(self._package)
            for module in pkgutil.iter_modules(package.__path__):
                importlib.import_module(f"{self._package}.{module.name}")


def _plain(name: str) -> str:
    """Return a name in canonical spelling, in which `zb_v`, `ZBV` and `zb-v` are equal."""
    return name.lower().replace("-", "").replace("_", "")
