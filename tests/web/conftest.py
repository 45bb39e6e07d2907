"""One server for the tests of a file, asked without a network; its processes do not load the tests again."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest

pytest.importorskip("starlette", reason="the extra `web` is not installed")
pytest.importorskip("httpx2", reason="Starlette's test client needs it")

URL = "http://127.0.0.1:8765"


@pytest.fixture(scope="session")
def light_processes() -> Iterator[None]:
    """A process of the page loads the program that started it; here that would be all of pytest, for each request."""
    main = sys.modules["__main__"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(main, "__spec__", None)
        if hasattr(main, "__file__"):
            patch.delattr(main, "__file__")
        yield


@pytest.fixture(scope="module")
def client_of(light_processes: None) -> Iterator[Callable[..., Any]]:
    """A client of a server with settings of its own."""
    from contextlib import ExitStack

    from starlette.testclient import TestClient

    from web.app import application
    from web.settings import Settings

    with ExitStack() as held:

        def made(**settings: Any) -> TestClient:
            app, _ = application(Settings(workers=1, **settings))
            return held.enter_context(TestClient(app, base_url=URL, raise_server_exceptions=False))

        yield made


@pytest.fixture(scope="module")
def client(client_of: Callable[..., Any]) -> Any:
    return client_of()


@pytest.fixture(scope="module")
def bare_client() -> Any:
    """A client of a server that has not begun: what it refuses needs no process."""
    from starlette.testclient import TestClient

    from web.app import application
    from web.settings import Settings

    return TestClient(application(Settings())[0], base_url=URL, raise_server_exceptions=False)
