"""The connection between the server and a worker process: messages to the server, and the request to stop."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from multiprocessing.connection import Connection
from threading import Event, Lock
from typing import Any

# A message of a process: its kind, and its content.
Message = tuple[str, Any]
STOP = "stop"


class Channel:
    """The worker's end of the connection: `send` sends to the server; `stop` is set once the server asks for it."""

    def __init__(self, connection: Connection) -> None:
        self._connection, self._sending = connection, Lock()
        self.stop = Event()

    def send(self, kind: str, content: object) -> None:
        """Send a message of this kind with its content to the server.

        A missing server is ignored here, since `listen` then ends the process.
        """
        with self._sending, contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self._connection.send((kind, content))

    def listen(self) -> None:
        """Wait for the request to stop, on a thread of its own; ends the process if the server is gone.

        It never returns.
        """
        try:
            while self._connection.recv() != STOP:
                pass
        except (EOFError, OSError):
            os._exit(1)
        self.stop.set()
        self.listen()


Work = Callable[..., None]
