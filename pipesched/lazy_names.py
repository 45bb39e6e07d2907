"""Names that a package offers from other modules, each imported when first used.

They are listed once, as imports under `if TYPE_CHECKING` in the package itself, where editors and type checkers find
them; here those imports are read from its source.
"""

from __future__ import annotations

import ast
from importlib import import_module
from importlib.util import find_spec
from typing import Any


class LazyNames:
    """The names that a package offers, with the module that defines each.

    `names` are all of them, in the order of the source. The constructor raises `ImportError` where the package's source
    cannot be read.
    """

    def __init__(self, package: str) -> None:
        self._package = package
        self._homes = dict(_imports(_source(package)))
        self.names = tuple(self._homes)

    def without(self, *libraries: str) -> list[str]:
        """Return the names that are in no module of these heavy libraries, and are none themselves, such as "torch".

        A library is found anywhere in the full name, as in `runtime.torch_runtime.load`.
        """
        return [name for name, home in self._homes.items() if not any(one in f"{home}.{name}" for one in libraries)]

    def __call__(self, name: str) -> Any:
        """Return the object of a name, as the package's `__getattr__`.

        `AttributeError` if there is none.
        """
        if name not in self._homes:
            raise AttributeError(f"module {self._package!r} has no attribute {name!r}")
        home = self._homes[name]
        return import_module(f"{home}.{name}") if home == self._package else getattr(import_module(home), name)


def _source(package: str) -> str:
    spec = find_spec(package)
    loader = None if spec is None else spec.loader
    source: str | None = loader.get_source(package) if loader is not None and hasattr(loader, "get_source") else None
    if source is None:
        raise ImportError(f"the source of {package!r} is needed to know what it offers; found none")
    return source


def _imports(source: str) -> list[tuple[str, str]]:
    """Return (name, module) of each `from module import name` in top-level blocks for type checkers, in order."""
    blocks = [one for one in ast.parse(source).body if isinstance(one, ast.If) and _is_for_type_checkers(one.test)]
    imports = [one for block in blocks for one in block.body if isinstance(one, ast.ImportFrom)]
    return [(alias.name, one.module) for one in imports for alias in one.names if one.module]


def _is_for_type_checkers(test: ast.expr) -> bool:
    return isinstance(test, ast.Name) and test.id == "TYPE_CHECKING"
