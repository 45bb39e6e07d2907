"""The option `--watch`: runs a command again whenever one of its input files changes, until Ctrl-C."""

from __future__ import annotations

import time
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from threading import Event

from commands.shared.catalogue import Exit
from commands.shared.output import note
from commands.shared.termination import reader_gone
from pipesched.errors import BadInput
from pipesched.event_when import event_when

INTERVAL = 0.25  # seconds between two looks at the files
# The arguments that name files which a command reads, each one path or several.
_READ = ("problem", "plan", "problems", "config", "others", "measured", "start", "schedule")

# What tells that a file was written: None where it is missing, as for a moment when an editor replaces it.
_Stamp = tuple[int, int, int] | None


def add_watch(parser: ArgumentParser) -> None:
    """Add `--watch` (False if not given): answer again whenever an input file changes; `main` implements it."""
    parser.add_argument("--watch", action="store_true", help="answer again whenever a file changes, until Ctrl-C")


def stop_event(args: Namespace) -> Event:
    """Return the event that asks a search to stop: `args.stop`, set by a changed file under `--watch`, else a new one.

    The caller lets signals set it (`interrupt_sets`).
    """
    found = getattr(args, "stop", None)
    return found if isinstance(found, Event) else Event()


def watch(args: Namespace, answer: Callable[[], int]) -> int:
    """Run `answer`, and again after each change of an input file, until it is interrupted; return its last exit code.

    It also ends once nobody reads standard output. A change stops the search under way; lines in between say what the
    command waits for. For each run `args.stop` is a new event, and `args.began` the time when it began. `BadInput`
    without input files, or with `--json`.
    """
    if args.json:
        raise BadInput("found --watch with --json; allowed: one of them, since --json prints one object")
    files = _files(args)
    if not files:
        raise BadInput("found --watch with no file; allowed: with a problem file, whose changes it waits for")
    while True:
        seen, args.stop = _stamps(files), Event()
        with _changes(files, seen, args.stop) as changed:
            code = answer()
        if reader_gone.is_set() or (code in (Exit.INTERRUPTED, Exit.TERMINATED) and not changed.is_set()):
            return code
        note(f"watching {', '.join(map(str, files))}; Ctrl-C ends")
        _await_change(files, seen)
        args.began = time.monotonic()
        print(f"\n{time.strftime('%H:%M:%S')} changed", flush=True)


def _files(args: Namespace) -> list[Path]:
    """Return the files that the arguments name, once each, in the order of `_READ`.

    Words that are no file, such as a schedule's name, are left out; a problem or plan file is kept even if it is
    missing.
    """
    given = [getattr(args, name, None) for name in _READ]
    paths = [path for value in given if value for path in ([value] if isinstance(value, str) else value)]
    certain = {path for name in _READ[:3] for path in _list(getattr(args, name, None))}
    return [Path(path) for path in dict.fromkeys(paths) if path in certain or Path(path).is_file()]


def _list(value: str | Sequence[str] | None) -> Sequence[str]:
    return [value] if isinstance(value, str) else value or []


def _stamps(files: Sequence[Path]) -> list[_Stamp]:
    return [_stamp(path) for path in files]


def _stamp(path: Path) -> _Stamp:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


def _changes(files: Sequence[Path], seen: Sequence[_Stamp], stop: Event) -> AbstractContextManager[Event]:
    """Context whose event, and also `stop`, are set once a file's time, size or inode differs from those in `seen`."""

    def changed() -> bool:
        if _stamps(files) == seen:
            return False
        stop.set()
        return True

    return event_when(changed, INTERVAL)


def _await_change(files: Sequence[Path], seen: Sequence[_Stamp]) -> None:
    """Wait until files differ from their earlier state `seen`, all exist, and none is still being written."""
    before = _stamps(files)
    while True:
        time.sleep(INTERVAL)
        now = _stamps(files)
        if now == before and now != seen and None not in now:
            return
        before = now
