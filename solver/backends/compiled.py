"""How inner loops are compiled: without counts of the references to the arrays that they work on.

With them a call that hands on a few dozen arrays takes as long as the work of a small move. Even without them handing
on takes time, so that parts of one loop, `inlined`, become part of what calls them. What is compiled so may use
arrays, also in named tuples, but make none.

No compiled function that Python calls returns a named tuple: its class is looked up by Python code behind the machine
code, and where `run_within` has ended the thread by then, that gives nothing, and Numba calls it all the same, which
ends the process. Plain tuples and arrays are made without Python code.
"""

from __future__ import annotations

from typing import Any

from numba import njit

_OPTIONS: dict[str, Any] = {"cache": True, "nogil": True, "_nrt": False}
inner: Any = njit(**_OPTIONS)
inlined: Any = njit(**_OPTIONS, forceinline=True)
