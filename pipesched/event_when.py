"""An event set by a thread once a condition is true, for work that only an event can stop."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Thread


@contextmanager
def event_when(condition: Callable[[], bool], interval: float) -> Iterator[Event]:
    """Context whose event is set once `condition` is true; it is checked at once, then every `interval` seconds."""
    event, over = Event(), Event()

    def watch() -> None:
        while not over.wait(interval):
            if condition():
                event.set()
                return

    if condition():
        event.set()
    watcher = Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield event
    finally:
        over.set()
        watcher.join()
