"""The server's answers to the requests of the page."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
from collections.abc import AsyncIterator

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse

from pipesched.errors import BadInput
from web.quick import Quick
from web.requests import Begin, Chart, Compare, File, read
from web.settings import Settings
from web.solve_record import Order
from web.solves import Solves
from web.streams import EVENTS, LINES, all_of, events, lines

_PATIENCE = 15.0  # seconds after which a silent stream of events says that it is still there


class Page:
    """Handlers for all requests of the page to one server, whose limits are the `settings` from which it is made.

    They raise `BadInput`, which the application answers with its texts, also where the server is too busy or too slow.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._quick, self._solves = Quick(settings), Solves(settings)
        self._closing = asyncio.Event()

    def close(self) -> None:
        """End all streams of events, since the server ends."""
        self._closing.set()

    @contextlib.asynccontextmanager
    async def lifespan(self, _: Starlette) -> AsyncIterator[None]:
        """Context of the server's life.

        Libraries are loaded while the first page is fetched, and no process outlives it.
        """
        loading = asyncio.create_task(all_of(self._quick, "start", self._settings))
        forgetting = asyncio.create_task(self._solves.forget_idle())
        try:
            yield
        finally:
            for task in (loading, forgetting):
                task.cancel()
            self._solves.end()

    async def start(self, _: Request) -> Response:
        """Return as JSON the page's start data: version, form, examples, formats, targets, and limits of the server."""
        return JSONResponse((await all_of(self._quick, "start", self._settings))["start"])

    async def compare(self, request: Request) -> Response:
        """Return all published schedules on a problem: a line of JSON for each result as it becomes known.

        The request is a `Compare`, `BadInput` for another; a mistake in the file is a line too.
        """
        asked = await read(request, Compare, self._settings.body_bytes)
        edits = [(edit.path, edit.typed) for edit in asked.edits]
        return StreamingResponse(lines(self._quick, "compare", asked.text, edits, self._settings), media_type=LINES)

    async def chart(self, request: Request) -> Response:
        """Return as JSON the chart of one published schedule; the request is a `Chart`.

        `BadInput` if it does not apply.
        """
        asked = await read(request, Chart, self._settings.body_bytes)
        return JSONResponse((await all_of(self._quick, "chart", asked.text, asked.schedule, self._settings))["chart"])

    async def begin(self, request: Request) -> Response:
        """Begin a solve and return JSON with its name under `solve`, by which the page follows it.

        The request is a `Begin`; `BadInput` has a line for each limit above the server's, or says that the queue is
        full or the tab has a solve already.
        """
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
        order = Order(asked.text, float(asked.seconds), asked.workers, asked.seed, asked.tab, asked.target)
        return JSONResponse({"solve": self._solves.begin(order).name})

    async def watch(self, request: Request) -> Response:
        """Return the events of a solve as server-sent events: all that is known, then every change until it is over.

        `BadInput` if the solve named in the address is not known.
        """
        solve = self._solves[request.path_params["name"]]
        return StreamingResponse(events(self._solves.watch(solve, _PATIENCE), self._closing), media_type=EVENTS)

    async def stop(self, request: Request) -> Response:
        """Stop the solve named in the address, and keep its result so far; the answer is an empty JSON object.

        `BadInput` if the solve is not known.
        """
        self._solves.stop(self._solves[request.path_params["name"]])
        return JSONResponse({})

    async def file(self, request: Request) -> Response:
        """Return a file to download: of the schedule that a solve has found, or of a published schedule on a problem.

        The request is a `File`; if it has both, the solve counts. `BadInput` if there is no schedule, or neither is
        given.
        """
        asked = await read(request, File, self._settings.body_bytes)
        if asked.solve is not None:
            text = self._solves[asked.solve].file
            if text is None:
                raise BadInput("this solve has found no schedule yet")
            found = await all_of(self._quick, "file of solve", text, asked.format)
        elif asked.text is not None and asked.schedule is not None:
            found = await all_of(
                self._quick, "file of published", asked.text, asked.schedule, asked.format, self._settings
            )
        else:
            raise BadInput("found neither `solve` nor `text` with `schedule`; allowed: one of them")
        name, content = found["bytes"]
        safe = re.sub(r"[^A-Za-z0-9._-]", "-", name)
        headers = {"content-disposition": f'attachment; filename="{safe}"', "x-notes": json.dumps(found["notes"])}
        return Response(content, media_type="application/octet-stream", headers=headers)
