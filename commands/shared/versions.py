"""The option `--version`: versions of pipesched and of the packages that its results depend on, on one line."""

from __future__ import annotations

import platform
from argparse import Action, ArgumentParser, Namespace
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from commands.shared.catalogue import Exit
from pipesched.version import VERSION

_LIBRARIES = ("ortools", "numba", "numpy", "torch")  # torch is an extra


class ShowVersions(Action):
    """Argparse action of an option without a value: prints the line of `versions` and ends the program with code 0."""

    def __init__(self, option_strings: list[str], dest: str, **keywords: Any) -> None:
        super().__init__(option_strings, dest, nargs=0, **keywords)

    def __call__(self, parser: ArgumentParser, _namespace: Namespace, _values: Any, _option: str | None = None) -> None:
        print(versions())
        parser.exit(Exit.DONE)


def versions() -> str:
    """Return a line such as `pipesched 0.1.0 (Python 3.11.7, ortools 9.15, numba 0.66, …)`.

    Missing packages are left out.
    """
    parts = [f"Python {platform.python_version()}"]
    for library in _LIBRARIES:
        try:
            parts.append(f"{library} {version(library)}")
        except PackageNotFoundError:
            continue
    return f"pipesched {VERSION} ({', '.join(parts)})"
