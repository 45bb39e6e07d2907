"""A process that works for the page: what it sends, how it is told to stop, what it says when it fails."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import traceback
from collections.abc import Callable
from multiprocessing.connection import Connection
from threading import Event, Lock, Thread
from typing import Any

from pipesched.errors import BadInput, Deadlock, Disagreement, defect_note
from pipesched.problem.formatting import visible

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


def run(connection: Connection, memory_bytes: int, name: str, arguments: tuple[object, ...]) -> None:
    """The whole life of a process: the work of this name, and one message of what went wrong, never a traceback."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the server's, which then ends its processes
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    channel = Channel(connection)
    Thread(target=channel.listen, daemon=True).start()
    try:
        _limit_memory(memory_bytes)
        # Heavy, and loaded in processes alone: the server itself needs none of it.
        from web.work.everything import WORK

        WORK[name](channel, *arguments)
    except BadInput as error:
        channel.send("mistakes", [visible(one) for one in error.mistakes])
    except Deadlock as error:
        channel.send("mistakes", [visible(str(error))])
    except Disagreement as error:
        channel.send("failed", visible(defect_note(str(error))))
    except MemoryError:
        channel.send("failed", "this takes more memory than the server allows; try a smaller problem")
    except RecursionError:
        channel.send("mistakes", ["problem: brackets or keys are nested too deeply"])
    except Exception as error:
        traceback.print_exc(file=sys.stderr)  # for who runs the server
        channel.send("failed", defect_note(f"{type(error).__name__} on the server, whose log has the details"))
    # The connection is left open: it ends with this process, and a thread that listens takes a closed one for the end
    # of the server.


def _limit_memory(memory_bytes: int) -> None:
    """Let this process fail alone, where the system can set such a limit."""
    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource

        most = resource.getrlimit(resource.RLIMIT_AS)[1]
        limit = memory_bytes if most == resource.RLIM_INFINITY else min(memory_bytes, most)
        resource.setrlimit(resource.RLIMIT_AS, (limit, most))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
