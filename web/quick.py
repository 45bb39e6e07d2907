"""Tasks of a few seconds: a limited number at once, others wait; each ends with its time limit or its request."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator

from web.processes import Process
from web.settings import Settings
from web.work.channel import Message

BUSY = ("failed", "the server is busy; try again in a moment")


class Quick:
    """A runner of short tasks in processes of their own; `settings` limit how many run or wait, and their time."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._running = asyncio.Semaphore(settings.quick)
        self._asked = 0

    async def run(self, work: str, *arguments: object) -> AsyncGenerator[Message]:
        """Run the task named `work` in a process and yield its messages (kind, content).

        The process ends once nobody reads the messages any more. The only message is `BUSY` if too many tasks wait; the
        last one is of kind "late" if the task exceeds `quick_seconds`, which count from the start of its process.
        """
        if self._asked >= self._settings.quick + self._settings.quick_waiting:
            yield BUSY
            return
        self._asked += 1
        try:
            async with self._running, contextlib.aclosing(self._of_one(work, *arguments)) as messages:
                async for message in messages:
                    yield message
        finally:
            self._asked -= 1

    async def _of_one(self, work: str, *arguments: object) -> AsyncGenerator[Message]:
        process = Process(self._settings, work, *arguments)
        messages = process.messages()
        try:
            await process.start()
            until = asyncio.get_running_loop().time() + self._settings.quick_seconds
            while True:
                left = until - asyncio.get_running_loop().time()
                yield await asyncio.wait_for(anext(messages), max(left, 0.0))
        except StopAsyncIteration:
            return
        except TimeoutError:
            yield "late", f"not done within {self._settings.quick_seconds:g} s"
        finally:
            process.kill()
