"""The server of the page: uvicorn on a socket that is bound first, so that its address is known."""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Callable
from types import FrameType

import uvicorn

from pipesched.errors import BadInput
from web.app import application
from web.settings import Settings


def serve(host: str, port: int, settings: Settings, opened: Callable[[str], None]) -> None:
    """Serve until interrupted; `opened` is called with the page's address once it accepts requests.

    `port` 0 takes any free one. `BadInput` if `host` is no address of this machine, or the port cannot be had.
    """
    listening = _bound(host, port)
    app, page = application(settings)
    config = uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=2,
        limit_concurrency=1000,
        h11_max_incomplete_event_size=64 * 2**10,
    )
    with listening:
        opened(_address(listening))
        _Server(config, page.close).run(sockets=[listening])


class _Server(uvicorn.Server):
    """A server that ends its streams of events when it shuts down, since it would otherwise wait for them."""

    def __init__(self, config: uvicorn.Config, close: Callable[[], None]) -> None:
        super().__init__(config)
        self._close = close

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self._close()
        super().handle_exit(sig, frame)


def is_loopback(host: str) -> bool:
    """Return True for `localhost` and addresses that only this machine can reach; False for any other name."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _bound(host: str, port: int) -> socket.socket:
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        listening = socket.socket(family, socket.SOCK_STREAM)
    except OSError as error:
        raise BadInput(f"--host: found {host!r}, which is not an address of this machine: {error.strerror}") from None
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
        listening.listen(128)
    except OSError as error:
        listening.close()
        raise BadInput(f"cannot listen on {host}, port {port}: {error.strerror}; --port 0 takes any free one") from None
    return listening


def _address(listening: socket.socket) -> str:
    """Return a URL that this machine's browser can open."""
    host, port = listening.getsockname()[:2]
    if ipaddress.ip_address(host).is_unspecified:
        host = "::1" if ":" in host else "127.0.0.1"
    return f"http://[{host}]:{port}/" if ":" in host else f"http://{host}:{port}/"
