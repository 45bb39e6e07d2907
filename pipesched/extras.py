"""The command that installs an optional dependency, with the interpreter that is running."""

from __future__ import annotations

import shlex
import sys


def to_install(with_extra: str) -> str:
    """Return the shell command that installs an optional dependency of pipesched.

    `with_extra` is a requirement with an extra, such as `pipesched[torch]`. Pip finds this pipesched installed, and
    adds what the extra needs.
    """
    return f"{shlex.quote(sys.executable or 'python')} -m pip install '{with_extra}'"
