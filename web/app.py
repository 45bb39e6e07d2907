"""The web application: its addresses, its files, and its error messages."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp

from pipesched.errors import BadInput, defect_note
from plots.html.assets import script, style
from web.answers import Page
from web.guards import Guards
from web.settings import Settings

_STATIC = Path(__file__).with_name("static")


def application(settings: Settings) -> tuple[ASGIApp, Page]:
    """Return the web application with its routes and guards, and the `Page` that handles its requests."""
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
    handlers: dict[Any, Any] = {
        BadInput: _bad_input, ClientDisconnect: _gone, 404: _not_found, 405: _not_found, Exception: _defect,
    }  # fmt: skip
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


async def _gone(_: Request, __: ClientDisconnect) -> Response:
    """Return what nobody reads: the connection was dropped before its request had come."""
    return Response(status_code=400)


async def _not_found(_: Request, __: Exception) -> Response:
    return JSONResponse({"mistakes": ["there is nothing at this address"]}, 404)


async def _defect(_: Request, error: Exception) -> Response:
    """Return an error of the server as one line for the page; the traceback goes to the server's log only."""
    note = defect_note(f"{type(error).__name__} on the server, whose log has the details")
    return JSONResponse({"mistakes": [note]}, 500)
