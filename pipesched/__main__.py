"""Entry points: `python -m pipesched`, `torchrun -m pipesched`, and the `pipesched` script."""

from __future__ import annotations

import atexit
import os
import signal
import sys
import time
from pathlib import Path
from types import FrameType
from typing import NoReturn


def main() -> NoReturn:
    """Run the command line and end the process with its exit code."""
    began = time.monotonic()
    atexit.register(_ignore_signals)  # the first of all, so that it runs last
    for each in (signal.SIGINT, signal.SIGTERM):
        signal.signal(each, _end_at_once)
    from commands.main import main as command_line
    from commands.shared.termination import leave, terminated

    try:
        code = command_line(began=began)
    except KeyboardInterrupt:  # while the command's handlers are replaced by those before it
        _end_at_once(signal.SIGTERM if terminated.is_set() else signal.SIGINT, None)
    leave(code)


def _end_at_once(number: int, _: FrameType | None) -> NoReturn:
    """Signal handler for before and after the command: ends the process without an exception, which might break an
    import."""
    os.write(2, b"pipesched: interrupted\n" if number == signal.SIGINT else b"pipesched: terminated\n")
    os._exit(128 + number)


def _ignore_signals() -> None:
    """Ignore SIGINT and SIGTERM from now on.

    At its end Python restores the default handlers, with which a signal would end the process with another exit code.
    """
    for each in (signal.SIGINT, signal.SIGTERM):
        signal.signal(each, signal.SIG_IGN)


def _find_our_packages_first() -> None:
    """Remove the caller's folder from the front of `sys.path`, since it may contain a `solver.py` or a `commands/`.

    `python -m` puts it there. In an installed wheel all packages are inside `pipesched` and nothing changes; in a
    checkout they are its siblings. A model of the caller's own is looked for in that folder when it is loaded.
    """
    ours = str(Path(__file__).resolve().parents[1])
    if sys.path[0] == str(Path.cwd()):
        del sys.path[0]
    if ours not in sys.path:
        sys.path.insert(0, ours)


if __name__ == "__main__":
    _find_our_packages_first()
    main()
