"""Writing of output files within the time limit; files that cannot be made from the others are written first."""

from __future__ import annotations

import time
from argparse import Namespace
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event
from typing import NamedTuple

from commands.options.search import interrupt_sets, not_interrupted
from commands.shared.output import note
from pipesched.deadline import Deadline, within
from pipesched.schedule.timeline import Timeline

# Pictures, report and exports of so few passes take a few seconds of a processor: they are written whatever the time.
_FEW_PASSES = 5_000
# Seconds, and share of the time limit, that files of many passes may take beyond it; seconds that they have after
# Ctrl-C.
_BEYOND_SECONDS, _BEYOND_SHARE, _AFTER_STOP = 1.5, 0.08, 1.0


class FileCosts(NamedTuple):
    """Time that files take to make, in microseconds for each pass.

    A file is not begun if it would not be finished in time. The times were measured on a schedule of 98,304 passes, on
    one core at 2.6 GHz. `gantt` and `memory` are the pictures, `report` the HTML page, `torch_csv` the CSV for PyTorch.
    """

    gantt: float = 60
    memory: float = 11
    report: float = 46
    torch_csv: float = 190


COSTS = FileCosts()


class TimedFiles:
    """A writer of output files that leaves out those for which no time is left; `paths` are the files written.

    `passes` is the number of passes of the schedule. Without a `deadline` no file is left out.
    """

    def __init__(self, deadline: Deadline | None, passes: int = 0) -> None:
        self._deadline, self._passes, self._left_out = deadline, passes, list[str]()
        self.paths: list[Path] = []

    def must(self, work: Callable[[], Iterable[Path]]) -> None:
        """Write small files regardless of the time limit; Ctrl-C waits for them.

        `work` writes them and returns their paths.
        """
        with not_interrupted():
            self.paths += work()

    def may(self, name: str, work: Callable[[], Iterable[Path]], each: float = 0) -> None:
        """Write files if time is left; none is begun that would not be finished in that time.

        Without a deadline they are always written. `each` is the time that they take, in microseconds for each pass of
        the schedule. `work` writes them and returns their paths; `name` is what the user calls them, by which
        `note_left_out` names those that were not written.
        """
        if self._deadline is None:
            self.must(work)
            return
        in_time = self._deadline.fits(each * self._passes / 1e6)
        found = within(self._deadline, lambda: list(work())) if in_time else None
        if found is None:
            self._left_out.append(name)
        else:
            self.paths += found

    @property
    def interrupted(self) -> bool:
        """True if Ctrl-C stopped the writing and files were left out."""
        return self._deadline is not None and self._deadline.stop.is_set() and bool(self._left_out)

    def note_left_out(self) -> None:
        """Print which files are missing, and how to get them; nothing if none is."""
        if self._left_out:
            files = ", ".join(self._left_out)
            note(f"note: no time to write {files}; a longer --time-limit has it, and so have plot and export")


@contextmanager
def timed_files(args: Namespace, timeline: Timeline, interrupted: bool) -> Iterator[TimedFiles]:
    """Context that yields a writer for a command that began at `args.began`.

    For a timeline of many passes, its deadline is a little after the command's time limit; if Ctrl-C has already ended
    the search (`interrupted`), it is at most a second from now. At its end it prints which files were left out. For few
    passes there is no deadline.
    """
    passes = sum(map(len, timeline.schedule.orders))
    if passes <= _FEW_PASSES:
        files = TimedFiles(None)
        yield files
        return
    stop, now = Event(), time.monotonic()
    limit = args.time_limit
    until = getattr(args, "began", now) + limit + max(_BEYOND_SECONDS, _BEYOND_SHARE * limit)
    files = TimedFiles(Deadline(min(until, now + _AFTER_STOP) if interrupted else until, stop), passes)
    with interrupt_sets(stop):
        yield files
    files.note_left_out()
