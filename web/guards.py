"""Checks of every request and headers of every answer: hosts, origins, types, and security headers for browsers."""

from __future__ import annotations

import ipaddress
import json
from collections.abc import Iterable
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from web.settings import Settings

_HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "cache-control": "no-store",
}


class Guards:
    """Middleware that refuses requests that no page of this server makes, before `app`, the application, is called."""

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self._app, self._settings = app, settings

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        reason = self._refused(scope["method"], Headers(scope=scope))
        if reason is not None:
            await _answer(_with_headers(send), *reason)
            return
        await self._app(scope, receive, _with_headers(send))

    def _refused(self, method: str, headers: Headers) -> tuple[int, str] | None:
        host = headers.get("host", "")
        if not is_ours(host, self._settings.hosts):
            allowed = "its address, localhost, or a name given by --allow-host"
            return 421, f"found the host {host[:100]!r}; allowed: {allowed}"
        if method in ("GET", "HEAD"):
            return None
        origin = headers.get("origin")
        if origin is not None and urlsplit(origin).netloc != host:
            return 403, "found a request of another site; allowed: those of this page"
        if method == "POST" and headers.get("content-type", "").partition(";")[0].strip() != "application/json":
            return 415, "found another type of content; allowed: application/json"
        length = headers.get("content-length", "0")
        if not length.isdecimal() or int(length) > self._settings.body_bytes:
            return 413, f"found a request of more than {self._settings.body_bytes} bytes; allowed: up to so many"
        return None


def is_ours(host: str, names: Iterable[str]) -> bool:
    """Return True if a `Host` header names this server: by an address, as localhost, or by one of `names`.

    Another site can make a name of its own resolve to this machine (DNS rebinding), and its pages would then count as
    pages of this server; with an address that is impossible.
    """
    try:
        name = urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return False
    if name == "localhost" or name in {one.lower() for one in names}:
        return True
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _with_headers(send: Send) -> Send:
    async def sent(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in _HEADERS.items():
                headers[name] = value
        await send(message)

    return sent


async def _answer(send: Send, status: int, reason: str) -> None:
    body = json.dumps({"mistakes": [reason]}).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
