"""The web application: what can be asked of it, and how each answer is made."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
from collections.abc import AsyncGenerator, AsyncIterator
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response, StreamingResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp

from pipesched.errors import BadInput, defect_note
from plots.html.assets import script, style
from web.guards import Guards
from web.quick import Quick
from web.requests import Begin, Chart, Compare, File, read
from web.settings import Settings
from web.solve_record import Order
from web.solves import Solves

_STATIC = Path(__file__).with_name("static")
_LINES = "application/x-ndjson"
_News = tuple[str, Any] | None
_OVER: _News = ("over", None)
_PATIENCE = 15.0  # seconds after which a silent stream of events says that it is still there


class Page:
    """The answers to all requests."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._quick, self._solves = Quick(settings), Solves(settings)
        self._closing = asyncio.Event()

    def close(self) -> None:
        """The server ends: so do all streams of events."""
        self._closing.set()

    @contextlib.asynccontextmanager
    async def lifespan(self, _: Starlette) -> AsyncIterator[None]:
        """Libraries are loaded while the first page is fetched; no process outlives the server."""
        loading = asyncio.create_task(self._one("start", self._settings))
        forgetting = asyncio.create_task(self._solves.forget_idle())
        try:
            yield
        finally:
            for task in (loading, forgetting):
                task.cancel()
            self._solves.end()

    async def start(self, _: Request) -> Response:
        """Fields, examples, formats, limits."""
        return JSONResponse((await self._one("start", self._settings))["start"])

    async def compare(self, request: Request) -> Response:
        """All published schedules on a problem: a line of JSON for each thing that becomes known."""
        asked = await read(request, Compare, self._settings.body_bytes)
        edits = [(edit.path, edit.typed) for edit in asked.edits]
        return StreamingResponse(self._lines("compare", asked.text, edits, self._settings), media_type=_LINES)

    async def chart(self, request: Request) -> Response:
        """The chart of one published schedule."""
        asked = await read(request, Chart, self._settings.body_bytes)
        return JSONResponse((await self._one("chart", asked.text, asked.schedule, self._settings))["chart"])

    async def begin(self, request: Request) -> Response:
        """Begin a solve."""
        asked = await read(request, Begin, self._settings.body_bytes)
        most = self._settings
        wrong = []
        if not 0 < asked.seconds <= most.seconds:
            wrong.append(f"seconds: found {asked.seconds:g}; allowed: above 0, up to {most.seconds:g}")
        if not 1 <= asked.workers <= most.workers:
            wrong.append(f"workers: found {asked.workers}; allowed: 1 to {most.workers}")
        if not 0 <= asked.seed < 2**31:
            wrong.append(f"seed: found {asked.seed}; allowed: 0 to {2**31 - 1}")
        if len(asked.text.encode("utf-8", "surrogatepass")) > most.text_bytes:
            wrong.append(f"text: found more than {most.text_bytes} bytes; allowed: up to so many")
        if wrong:
            raise BadInput(*wrong)
        order = Order(asked.text, float(asked.seconds), asked.workers, asked.seed, asked.tab)
        return JSONResponse({"solve": self._solves.begin(order).name})

    async def watch(self, request: Request) -> Response:
        """The events of a solve: all that is known, then every change."""
        solve = self._solves[request.path_params["name"]]
        return StreamingResponse(self._events(self._solves.watch(solve, _PATIENCE)), media_type="text/event-stream")

    async def stop(self, request: Request) -> Response:
        """End a solve; what it has found is kept."""
        self._solves.stop(self._solves[request.path_params["name"]])
        return JSONResponse({})

    async def file(self, request: Request) -> Response:
        """A file to download."""
        asked = await read(request, File, self._settings.body_bytes)
        if asked.solve is not None:
            text = self._solves[asked.solve].file
            if text is None:
                raise BadInput("this solve has found no schedule yet")
            found = await self._one("file of solve", text, asked.format)
        elif asked.text is not None and asked.schedule is not None:
            found = await self._one("file of published", asked.text, asked.schedule, asked.format, self._settings)
        else:
            raise BadInput("found neither `solve` nor `text` with `schedule`; allowed: one of them")
        name, content = found["bytes"]
        safe = re.sub(r"[^A-Za-z0-9._-]", "-", name)
        headers = {"content-disposition": f'attachment; filename="{safe}"', "x-notes": json.dumps(found["notes"])}
        return Response(content, media_type="application/octet-stream", headers=headers)

    async def _one(self, work: str, *arguments: object) -> dict[str, Any]:
        """All that a piece of work sends, the last of each kind; `BadInput` with what it complains of."""
        found: dict[str, Any] = {}
        async with contextlib.aclosing(self._quick.run(work, *arguments)) as messages:
            async for kind, content in messages:
                if kind == "mistakes":
                    raise BadInput(*content)
                if kind in ("failed", "late"):
                    raise BadInput(content)
                found[kind] = content
        return found

    async def _lines(self, work: str, *arguments: object) -> AsyncIterator[str]:
        async with contextlib.aclosing(self._quick.run(work, *arguments)) as messages:
            async for kind, content in messages:
                yield json.dumps({kind: content}) + "\n"
        yield json.dumps({"end": True}) + "\n"

    async def _events(self, news: AsyncGenerator[_News]) -> AsyncIterator[str]:
        """As server-sent events, until the solve is over or the server ends."""
        closed = asyncio.ensure_future(self._closing.wait())
        following = asyncio.ensure_future(_next(news))
        try:
            while not self._closing.is_set():
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
    """One server-sent event; a comment where there is no news, so that nobody takes the connection for dead."""
    return ": still searching\n\n" if one is None else f"event: {one[0]}\ndata: {json.dumps(one[1])}\n\n"


def application(settings: Settings) -> tuple[ASGIApp, Page]:
    """The application, and the answers behind it."""
    page = Page(settings)
    routes = [
        Route("/", _page),
        Route("/chart.js", _chart_script),
        Route("/chart.css", _chart_style),
        Route("/api/start", page.start),
        Route("/api/compare", page.compare, methods=["POST"]),
        Route("/api/chart", page.chart, methods=["POST"]),
        Route("/api/solves", page.begin, methods=["POST"]),
        Route("/api/solves/{name}/events", page.watch),
        Route("/api/solves/{name}/stop", page.stop, methods=["POST"]),
        Route("/api/files", page.file, methods=["POST"]),
        Mount("/static", StaticFiles(directory=_STATIC)),
    ]
    handlers: dict[Any, Any] = {BadInput: _bad_input, 404: _not_found, 405: _not_found, Exception: _defect}
    app = Starlette(routes=routes, exception_handlers=handlers, lifespan=page.lifespan)
    return Guards(app, settings), page


async def _page(_: Request) -> Response:
    return FileResponse(_STATIC / "index.html")


async def _chart_script(_: Request) -> Response:
    return Response(script(), media_type="text/javascript")


async def _chart_style(_: Request) -> Response:
    return Response(style(), media_type="text/css")


async def _bad_input(_: Request, error: BadInput) -> Response:
    return JSONResponse({"mistakes": list(error.mistakes)}, 400)


async def _not_found(_: Request, __: Exception) -> Response:
    return JSONResponse({"mistakes": ["there is nothing at this address"]}, 404)


async def _defect(_: Request, error: Exception) -> Response:
    """One line for the page; the traceback goes to the server's log alone."""
    note = defect_note(f"{type(error).__name__} on the server, whose log has the details")
    return JSONResponse({"mistakes": [note]}, 500)
