"""Files written one after another within the time limit; first those that cannot be made later from the others."""

from __future__ import annotations

import time
from argparse import Namespace
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event

from commands.options.search import interrupt_sets, not_interrupted
from commands.shared.output import note
from pipesched.deadline import Deadline, within
from pipesched.schedule.timeline import Timeline

# Pictures, report and exports of so few passes take a few seconds of a processor: they are written whatever the time.
_FEW_PASSES = 5_000
# Seconds, and share of the time limit, that files of many passes may take beyond it; seconds that they have after
# Ctrl-C.
_BEYOND_SECONDS, _BEYOND_SHARE, _AFTER_STOP = 1.5, 0.08, 1.0


class TimedFiles:
    """`paths` are those written. What needs another try is left out, and said by `note_left_out`."""

    def __init__(self, deadline: Deadline | None) -> None:
        self._deadline, self._left_out = deadline, list[str]()
        self.paths: list[Path] = []

    def must(self, work: Callable[[], Iterable[Path]]) -> None:
        """Small files that are written whatever the time, which Ctrl-C waits for."""
        with not_interrupted():
            self.paths += work()

    def may(self, name: str, work: Callable[[], Iterable[Path]]) -> None:
        """Files that are written in time or not at all; none is begun once the deadline is over."""
        if self._deadline is None:
            self.must(work)
            return
        found = None if self._deadline.expired() else within(self._deadline, lambda: list(work()))
        if found is None:
            self._left_out.append(name)
        else:
            self.paths += found

    @property
    def interrupted(self) -> bool:
        """True if Ctrl-C stopped the writing and left some out."""
        return self._deadline is not None and self._deadline.stop.is_set() and bool(self._left_out)

    def note_left_out(self) -> None:
        """Say which are missing, and how to have them."""
        if self._left_out:
            files = ", ".join(self._left_out)
            note(f"note: no time to write {files}; a longer --time-limit has it, and so have plot and export")


@contextmanager
def timed_files(args: Namespace, timeline: Timeline, interrupted: bool) -> Iterator[TimedFiles]:
    """For a command that began at `args.began`: of many passes no longer than a little beyond its time limit.

    `interrupted`: Ctrl-C has ended the search already, and is not to wait for pictures.
    """
    passes = sum(map(len, timeline.schedule.orders))
    if passes <= _FEW_PASSES:
        files = TimedFiles(None)
        yield files
        return
    stop, now = Event(), time.monotonic()
    limit = args.time_limit
    until = getattr(args, "began", now) + limit + max(_BEYOND_SECONDS, _BEYOND_SHARE * limit)
    files = TimedFiles(Deadline(min(until, now + _AFTER_STOP) if interrupted else until, stop))
    with interrupt_sets(stop):
        yield files
    files.note_left_out()
