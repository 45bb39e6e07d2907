"""Signals that end a command: Ctrl-C, SIGTERM (`timeout`, Slurm, Docker), and SIGHUP from a terminal that closes."""

from __future__ import annotations

import signal

# Windows has no SIGHUP.
HANG_UP: signal.Signals | None = getattr(signal, "SIGHUP", None)


def ending_signals() -> tuple[signal.Signals, ...]:
    """Return the signals that end a command: SIGINT, SIGTERM, SIGHUP.

    Without SIGHUP on Windows, which has none, and where it is ignored, as `nohup` makes it.
    """
    found = (signal.SIGINT, signal.SIGTERM)
    return found if HANG_UP is None or signal.getsignal(HANG_UP) is signal.SIG_IGN else (*found, HANG_UP)
