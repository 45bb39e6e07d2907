"""Decorators for the functions of a run: inlined into the compiled kernel, and plain Python where Python calls them."""

from __future__ import annotations

from typing import Any

from numba.extending import register_jitable

# `part` is for functions that create no arrays and need no reference counts, `making` for those that do.
part: Any = register_jitable(_nrt=False, forceinline=True, no_cfunc_wrapper=True)
making: Any = register_jitable(no_cfunc_wrapper=True)
