"""The line between the server and a process that works for it: what is sent, and the order to stop."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from multiprocessing.connection import Connection
from threading import Event, Lock
from typing import Any

# What a process sends: what it is, and the thing itself.
Message = tuple[str, Any]
STOP = "stop"


class Channel:
    """The end in the process: `send` to the server; `stop` is set once the server asks for it."""

    def __init__(self, connection: Connection) -> None:
        self._connection, self._sending = connection, Lock()
        self.stop = Event()

    def send(self, kind: str, content: object) -> None:
        """To the server; a server that is gone ends the process, as `listen` does."""
        with self._sending, contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self._connection.send((kind, content))

    def listen(self) -> None:
        """Wait for the order to stop, on a thread of its own. Without a server there is nobody left to work for."""
        try:
            while self._connection.recv() != STOP:
                pass
        except (EOFError, OSError):
            os._exit(1)
        self.stop.set()
        self.listen()


Work = Callable[..., None]
