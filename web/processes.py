"""Worker processes of the server.

Each runs one task, sends messages to the event loop, and can be ended at any time.
"""

from __future__ import annotations

import asyncio
import contextlib
import multiprocessing
import os
import sys
from collections.abc import AsyncIterator, Iterator
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from threading import Lock, Thread

from web.settings import Settings
from web.work.channel import STOP, Message
from web.work.process import run

DIED = ("failed", "the work was ended by the system, most likely since it took too much memory; try a smaller problem")
_LOADED_ONCE = "web.work.everything"
_starting = Lock()


def _context() -> multiprocessing.context.BaseContext:
    """Return the multiprocessing context: where possible, processes are forks of one that has loaded all libraries."""
    if sys.platform == "win32" or "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    found = multiprocessing.get_context("forkserver")
    found.set_forkserver_preload([_LOADED_ONCE])
    return found


@contextlib.contextmanager
def _our_path() -> Iterator[None]:
    """Context in which the process that others are forked from finds our packages where this one does.

    By itself it would look in the working directory first, which may have a `web.py` of the user's, and not know our
    path.
    """
    ours = {"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "PYTHONSAFEPATH": "1"}
    before = {name: os.environ.get(name) for name in ours}
    os.environ.update(ours)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


class Process:
    """The task named `work`, called with `arguments` in a process of its own, which may take the memory in `settings`.

    After `start`, `messages` yields what it sends, and ends with it.
    """

    def __init__(self, settings: Settings, work: str, *arguments: object) -> None:
        self._settings, self._work, self._arguments = settings, work, arguments
        self._messages: asyncio.Queue[Message | None] = asyncio.Queue()
        self._ours: Connection | None = None
        self._process: BaseProcess | None = None
        self._killed = False

    async def start(self) -> None:
        """Start the process; the first one takes seconds to load the libraries."""
        loop = asyncio.get_running_loop()
        await asyncio.to_thread(self._start)
        assert self._ours
        Thread(target=self._receive, args=(self._ours, loop), daemon=True).start()

    def _start(self) -> None:
        context = _context()
        self._ours, theirs = context.Pipe()
        arguments = (theirs, self._settings.memory_bytes, self._work, self._arguments)
        self._process = context.Process(target=run, args=arguments, daemon=True)  # type: ignore[attr-defined]
        with _starting, _our_path():
            self._process.start()
        theirs.close()

    def _receive(self, connection: Connection, loop: asyncio.AbstractEventLoop) -> None:
        """Put every message into the event loop's queue, and None once the process has ended.

        Runs on a thread of its own.
        """
        with contextlib.suppress(RuntimeError):  # the loop was closed: the server is gone
            with contextlib.suppress(EOFError, OSError):
                while True:
                    loop.call_soon_threadsafe(self._messages.put_nowait, connection.recv())
            loop.call_soon_threadsafe(self._messages.put_nowait, None)

    async def messages(self) -> AsyncIterator[Message]:
        """Yield the process's messages until it ends; the last one is `DIED` if the system ended it, and not we."""
        while (message := await self._messages.get()) is not None:
            yield message
        code = await asyncio.to_thread(self._join)
        if code and not self._killed:
            yield DIED

    def _join(self) -> int | None:
        assert self._process
        self._process.join(5)
        return self._process.exitcode

    def stop(self) -> None:
        """Ask the process to end with what it has."""
        if self._ours is not None:
            with contextlib.suppress(OSError):
                self._ours.send(STOP)

    def kill(self) -> None:
        """End the process now."""
        self._killed = True
        if self._process is not None and self._process.is_alive():
            self._process.kill()
