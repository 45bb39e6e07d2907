"""How inner loops of the check are compiled: without counts of references to the arrays that they are handed.

Counting takes as long as the work of a small function that is called for each label. What is compiled so may read and
write arrays, but make none.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

from numba import njit

_Function = TypeVar("_Function", bound=Callable[..., Any])
_OPTIONS: dict[str, Any] = {"cache": True, "nogil": True, "_nrt": False}


def inner(function: _Function) -> _Function:
    """Compiled for other compiled code."""
    return cast(_Function, njit(**_OPTIONS)(function))
