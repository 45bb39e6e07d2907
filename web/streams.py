"""Messages of processes and solves as HTTP answers: all at once, line by line, or as server-sent events."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Any

from pipesched.errors import BadInput
from web.quick import Quick

LINES, EVENTS = "application/x-ndjson", "text/event-stream"
_News = tuple[str, Any] | None
_OVER: _News = ("over", None)


async def all_of(quick: Quick, work: str, *arguments: object) -> dict[str, Any]:
    """Return by kind the content of the last message that a task sends.

    `BadInput` if it sends mistakes, fails or is late. `work` is the task's name in the process, `arguments` are its
    arguments.
    """
    found: dict[str, Any] = {}
    async with contextlib.aclosing(quick.run(work, *arguments)) as messages:
        async for kind, content in messages:
            if kind == "mistakes":
                raise BadInput(*content)
            if kind in ("failed", "late"):
                raise BadInput(content)
            found[kind] = content
    return found


async def lines(quick: Quick, work: str, *arguments: object) -> AsyncIterator[str]:
    """Yield a line of JSON, `{kind: content}`, for each message of a task, then `{"end": true}`.

    `work` is the task's name in the process, `arguments` are its arguments.
    """
    async with contextlib.aclosing(quick.run(work, *arguments)) as messages:
        async for kind, content in messages:
            yield json.dumps({kind: content}) + "\n"
    yield json.dumps({"end": True}) + "\n"


async def events(news: AsyncGenerator[_News], closing: asyncio.Event) -> AsyncIterator[str]:
    """Yield the server-sent events of `news`, until these end or `closing` is set, and close `news`.

    None among the news becomes a comment that keeps the connection alive.
    """
    closed = asyncio.ensure_future(closing.wait())
    following = asyncio.ensure_future(_next(news))
    try:
        while not closing.is_set():
            await asyncio.wait({following, closed}, return_when=asyncio.FIRST_COMPLETED)
            if not following.done() or following.result() is _OVER:
                return
            yield _event(following.result())
            following = asyncio.ensure_future(_next(news))
    finally:
        closed.cancel()
        following.cancel()
        await asyncio.gather(closed, following, return_exceptions=True)
        await news.aclose()


async def _next(news: AsyncGenerator[_News]) -> _News:
    try:
        return await anext(news)
    except StopAsyncIteration:
        return _OVER


def _event(one: _News) -> str:
    """Return one server-sent event; a comment if there is no news, to keep the connection alive."""
    return ": still searching\n\n" if one is None else f"event: {one[0]}\ndata: {json.dumps(one[1])}\n\n"
