"""The solves of a server: each in a process of its own, a limited number at once, others in a queue."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Coroutine
from typing import Any

from pipesched.errors import BadInput
from web.processes import Process
from web.settings import Settings
from web.solve_record import Order, Solve

# Seconds that a solve which is over its time, or was told to stop, may take to end by itself.
GRACE = 20.0
_LOOK = 5.0  # seconds between looks for solves that nobody watches


class Solves:
    """All solves of a server, with the limits in `settings`; a stopped process is killed after `grace` seconds.

    It runs in the event loop alone, so that nothing changes between two awaits.
    """

    def __init__(self, settings: Settings, grace: float = GRACE) -> None:
        self._settings, self._grace = settings, grace
        self._all: dict[str, Solve] = {}
        self._waiting: list[Solve] = []
        self._running: dict[Solve, Process] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def __getitem__(self, name: str) -> Solve:
        if name not in self._all:
            raise BadInput("this solve is not known: it ended a while ago, or the server was started anew")
        return self._all[name]

    def begin(self, order: Order) -> Solve:
        """Return a new solve, which waits for its turn; `BadInput` if the queue is full or the tab has one already."""
        if any(one.order.tab == order.tab and not one.over for one in (*self._waiting, *self._running)):
            raise BadInput("this page has a solve under way; stop it first")
        if len(self._waiting) >= self._settings.waiting:
            raise BadInput(f"{len(self._waiting)} solves are waiting already; try again later")
        solve = Solve(order, left_at=_now())
        self._all[solve.name] = solve
        self._waiting.append(solve)
        self._advance()
        return solve

    def stop(self, solve: Solve) -> None:
        """Stop a solve and keep its result so far; a process that does not end by itself is killed.

        One that still waits for its turn has no result and fails. Nothing if it is over or stopped already.
        """
        if solve.over or solve.stopped:
            return
        solve.stopped = True
        if solve in self._waiting:
            self._waiting.remove(solve)
            solve.tell("failed", "stopped before its turn came")
            self._advance()
        elif solve in self._running:
            self._running[solve].stop()
            self._later(self._grace, solve)

    async def watch(self, solve: Solve, patience: float) -> AsyncGenerator[tuple[str, Any] | None]:
        """Yield the events (kind, content) of a solve, which is not forgotten meanwhile.

        None after `patience` seconds without one.
        """
        solve.watchers += 1
        try:
            async for one in solve.news(patience):
                yield one
        finally:
            solve.watchers -= 1
            solve.left_at = _now()

    async def forget_idle(self) -> None:
        """End and forget solves that nobody watches any more, for as long as the server runs.

        Beyond `Settings.kept` solves in all, those that are over and unwatched are forgotten at once, the one left
        longest ago first.
        """
        while True:
            await asyncio.sleep(min(_LOOK, self._settings.idle_seconds))
            self._forget()

    def end(self) -> None:
        """Kill all processes, since the server ends."""
        for process in self._running.values():
            process.kill()
        for task in self._tasks:
            task.cancel()

    def _forget(self) -> None:
        since = _now() - self._settings.idle_seconds
        alone = [one for one in self._all.values() if not one.watchers]
        ended = sorted((one for one in alone if one.over), key=lambda one: one.left_at)
        too_many = ended[: max(0, len(self._all) - self._settings.kept)]
        for solve in {*too_many, *(one for one in alone if one.left_at < since)}:
            self.stop(solve)
            del self._all[solve.name]

    def _advance(self) -> None:
        """Start the solves whose turn it is, and send the others their places in the queue."""
        while self._waiting and len(self._running) < self._settings.solves:
            solve = self._waiting.pop(0)
            order = solve.order
            work = ("solve", order.text, order.seconds, order.workers, order.seed, order.target, self._settings)
            self._running[solve] = Process(self._settings, *work)
            self._spawn(self._run(solve, self._running[solve]))
        for place, solve in enumerate(self._waiting):
            solve.tell("queue", {"place": place + 1, "waiting": len(self._waiting)})

    async def _run(self, solve: Solve, process: Process) -> None:
        """Run one solve from start to end: pass on its messages, and report its end if it sends no last message."""
        try:
            await process.start()
            solve.tell("started", {"seconds": solve.order.seconds})
            self._later(solve.order.seconds + self._grace, solve)
            async for kind, content in process.messages():
                solve.tell(kind, content)
                if solve.over:
                    break
        finally:
            process.kill()
            self._running.pop(solve, None)
            if not solve.over:
                solve.tell("failed", "ended before its search was over; the best schedule until then is kept")
            self._advance()

    def _later(self, seconds: float, solve: Solve) -> None:
        """Kill a solve after `seconds` if it is not over."""

        async def kill() -> None:
            await asyncio.sleep(seconds)
            if solve in self._running:
                self._running[solve].kill()

        self._spawn(kill())

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def _now() -> float:
    return asyncio.get_running_loop().time()
