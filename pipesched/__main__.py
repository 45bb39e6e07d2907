"""Entry points: `python -m pipesched`, `torchrun -m pipesched`, and the `pipesched` script."""

from __future__ import annotations

import atexit
import gc
import os
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import NoReturn

from pipesched.ending_signals import HANG_UP, ending_signals

# New objects between searches for garbage, then how many searches of each age there are between those of the next. With
# Python's 700, 10 and 10 they take .4 of the 2.7 processor seconds of a small solve, with these .2.
_GARBAGE = 20_000, 20, 20


def main() -> NoReturn:
    """Run the command line and end the process with its exit code: by `SystemExit`, or at once after a signal.

    Called once in a process: signal handlers and limits of garbage collection stay, and the process ends with this code
    also if the `SystemExit` is caught and the program goes on.
    """
    began = time.monotonic()
    gc.set_threshold(*_GARBAGE)
    answered: list[int] = []
    alone = not atexit._ncallbacks()
    atexit.register(_end, answered)  # the first of ours, so that it runs last
    for each in ending_signals():
        signal.signal(each, _end_at_once)
    from commands.main import main as command_line
    from commands.shared.termination import hung_up, leave, terminated

    try:
        code = command_line(began=began)
    except KeyboardInterrupt:  # while the command's handlers are replaced by those before it
        last = signal.SIGTERM if terminated.is_set() else signal.SIGINT
        _end_at_once(HANG_UP if HANG_UP is not None and hung_up.is_set() else last, None)
    if alone and not sys.flags.dev_mode:
        answered.append(code)
    leave(code)


def _end_at_once(number: int, _: FrameType | None) -> NoReturn:
    """Signal handler for before and after the command.

    Writes one line to stderr and ends the process, with exit code 128 + `number`, without an exception, which might
    break an import.
    """
    with suppress(OSError):  # a terminal that is gone
        os.write(2, b"pipesched: interrupted\n" if number == signal.SIGINT else b"pipesched: terminated\n")
    os._exit(128 + number)


def _end(answered: list[int]) -> None:
    """Ignore signals from now on, and end the process with the exit code in `answered`; return if that is empty.

    What would follow is Python's own end: it restores the default handlers, with which a signal would end the process
    with another exit code, and takes apart all that was loaded, a quarter of a small solve's time. It is left to Python
    where output cannot be written, as it says so; in development mode, as it reports what was not closed; and where
    others, such as a profiler, have registered functions before, which run after this one.
    """
    for each in ending_signals():
        signal.signal(each, signal.SIG_IGN)
    if answered:
        try:
            for stream in (sys.stdout, sys.stderr):
                if stream is not None:
                    stream.flush()
        except (OSError, ValueError):
            return
        os._exit(answered[0])


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
