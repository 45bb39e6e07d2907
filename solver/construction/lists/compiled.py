"""Decorators for the functions of a run: inlined into the compiled kernel, and plain Python where Python calls them."""

from __future__ import annotations

from typing import Any

from numba.extending import register_jitable

# Without counts of references, so that it makes no arrays; and what does.
part: Any = register_jitable(_nrt=False, forceinline=True, no_cfunc_wrapper=True)
making: Any = register_jitable(no_cfunc_wrapper=True)
