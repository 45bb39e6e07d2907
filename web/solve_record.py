"""One solve of the page: the request, what is known so far, and events for its watchers."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from typing import Any

# What ends a solve.
_LAST = frozenset({"solution", "failed", "mistakes"})


@dataclass(frozen=True)
class Order:
    """A request for a solve of the problem or plan file in `text`, for at most `seconds`, with `workers` threads.

    `seed` is that of the search; a browser `tab`, named by a text, has one solve at a time. `target` is the runtime to
    which schedules are restricted (None: any).
    """

    text: str
    seconds: float
    workers: int
    seed: int
    tab: str
    target: str | None = None


@dataclass(eq=False)
class Solve:
    """One solve of the page, and what its watchers are to know.

    `_known` has the latest event of each kind, with the number of the change that made it, so that a watcher gets all
    later than the last it saw. `name` is a random text that identifies the solve. `file` is the text of the best
    schedule's file, None as long as there is none. `over`: it has ended; `stopped`: its user stopped it. `watchers` is
    the number of pages that follow it now, `left_at` the event loop's time, in seconds, when the last one left.
    """

    order: Order
    name: str = field(default_factory=lambda: secrets.token_urlsafe(16))
    file: str | None = None
    over: bool = False
    stopped: bool = False
    watchers: int = 0
    left_at: float = 0.0
    _history: list[dict[str, Any]] = field(default_factory=list)
    _known: dict[str, tuple[int, Any]] = field(default_factory=dict)
    _changes: int = 0
    _changed: asyncio.Event = field(default_factory=asyncio.Event)

    def tell(self, kind: str, content: Any) -> None:
        """Record an event of the solve, and wake those that wait for news; a `file` is only kept.

        An event has a kind, such as `moment`, and content as JSON values; "solution", "failed" and "mistakes" end the
        solve.
        """
        if kind == "file":
            self.file = content
            return
        if kind == "moment":
            self._remember(content)
        self._changes += 1
        self._known.pop("queue", None)
        self._known[kind] = self._changes, content
        self.over = self.over or kind in _LAST
        before, self._changed = self._changed, asyncio.Event()
        before.set()

    def _remember(self, moment: dict[str, Any]) -> None:
        """Add a moment to the history if value or bound changed."""
        last = self._history[-1] if self._history else {}
        if (last.get("value"), last.get("bound")) != (moment["value"], moment["bound"]):
            self._history.append({key: moment[key] for key in ("seconds", "value", "bound")})

    async def news(self, patience: float) -> AsyncGenerator[tuple[str, Any] | None]:
        """Yield events (kind, content): the history, all else that is known, then changes until the solve is over.

        The first event is of kind "history". Of several changes of one kind that happen while the reader waits only the
        last is yielded. None is yielded whenever nothing changes for `patience` seconds.
        """
        seen = 0
        yield "history", list(self._history)
        while True:
            changed, over = self._changed, self.over
            for number, kind, content in sorted(self._later(seen), key=lambda one: one[0]):
                seen = number
                yield kind, content
            if over:
                return
            try:
                await asyncio.wait_for(changed.wait(), patience)
            except TimeoutError:
                yield None

    def _later(self, seen: int) -> list[tuple[int, str, Any]]:
        return [(number, kind, content) for kind, (number, content) in self._known.items() if number > seen]
