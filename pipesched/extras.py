"""The command that installs an extra: with the interpreter that runs, since another one's pip would not serve it."""

from __future__ import annotations

import shlex
import sys


def to_install(with_extra: str) -> str:
    """The command for, say, `pipesched[torch]`; pip finds this very pipesched there, and adds what the extra needs."""
    return f"{shlex.quote(sys.executable or 'python')} -m pip install '{with_extra}'"
