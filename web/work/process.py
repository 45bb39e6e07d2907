"""A worker process from start to end: its memory limit, its task, and the message if it fails."""

from __future__ import annotations

import contextlib
import signal
import sys
import traceback
from multiprocessing.connection import Connection
from threading import Thread

from pipesched.errors import BadInput, Deadlock, Disagreement, defect_note
from pipesched.problem.formatting import visible
from web.work.channel import Channel


def run(connection: Connection, memory_bytes: int, name: str, arguments: tuple[object, ...]) -> None:
    """Run the task of this name as the process's whole life; an error is sent as one message, never as a traceback.

    That is "mistakes", a list of texts, where the input is wrong, else "failed", a text. `memory_bytes` is the most
    memory that the process may take. The task also ends if the server does.
    """
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
    """Limit this process's address space to `memory_bytes`, where the system allows it, so that it fails alone."""
    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource

        most = resource.getrlimit(resource.RLIMIT_AS)[1]
        limit = memory_bytes if most == resource.RLIM_INFINITY else min(memory_bytes, most)
        resource.setrlimit(resource.RLIMIT_AS, (limit, most))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
