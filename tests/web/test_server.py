"""The server: options, requests of other sites, large ones, and those that make no sense."""

from __future__ import annotations

import asyncio
import builtins
import socket
from typing import Any

import pytest

from commands.main import main
from tests.support.web_answers import GOOD
from web import server
from web.guards import is_ours
from web.server import is_loopback


@pytest.mark.parametrize(
    ("host", "ours"),
    [("127.0.0.1", True), ("localhost", True), ("::1", True), ("0.0.0.0", False), ("10.0.0.1", False), ("a.b", False)],
)
def test_loopback(host: str, ours: bool) -> None:
    assert is_loopback(host) == ours


@pytest.fixture
def not_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    """The server says its address and ends."""
    monkeypatch.setattr(server._Server, "run", lambda *_, **__: None)


@pytest.mark.usefixtures("not_begun")
def test_the_address_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve", "--port", "0"]) == 0
    said = capsys.readouterr()
    assert "http://127.0.0.1:" in said.out and said.err == ""
    assert main(["serve", "--port", "0", "--host", "0.0.0.0", "--json"]) == 0
    said = capsys.readouterr()
    assert '"url": "http://127.0.0.1:' in said.out and "others can reach this page" in said.err


@pytest.mark.usefixtures("not_begun")
@pytest.mark.parametrize(
    "arguments",
    [["--host", "256.0.0.1"], ["--host", "192.0.2.1"], ["--port", "70000"], ["--most-seconds", "0"], ["--solves", "0"]],
)
def test_what_cannot_be_is_one_line(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    try:
        code = main(["serve", "--port", "0", *arguments])
    except SystemExit as ended:
        code = int(str(ended.code))
    assert code == 2 and len(capsys.readouterr().err.splitlines()) == 1


@pytest.mark.usefixtures("not_begun")
def test_a_port_that_is_taken(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        assert main(["serve", "--port", str(taken.getsockname()[1])]) == 2
    assert "--port 0 takes any free one" in capsys.readouterr().err


def test_without_the_extra(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    real = builtins.__import__

    def missing(name: str, *arguments: Any) -> Any:
        if name == "web.server":
            raise ModuleNotFoundError("No module named 'uvicorn'", name="uvicorn")
        return real(name, *arguments)

    monkeypatch.setattr(builtins, "__import__", missing)
    assert main(["serve"]) == 2
    assert "serve needs uvicorn" in capsys.readouterr().err


@pytest.mark.parametrize(
    "host", ["localhost", "localhost:8765", "127.0.0.1:1", "[::1]:8765", "192.168.1.7:80", "my.host", "MY.host:1"]
)
def test_our_hosts(host: str) -> None:
    assert is_ours(host, {"my.host"})


@pytest.mark.parametrize(
    "host",
    [
        "", "evil.example", "evil.example:8765", "localhost.evil.example", "127.0.0.1.evil.example", "[::1",
        "a@evil.example", "127.0.0.1@evil.example",
    ],
)  # fmt: skip
def test_names_of_others(host: str) -> None:
    assert not is_ours(host, {"my.host"})


@pytest.mark.parametrize("path", ["/", "/api/start", "/static/main.js", "/chart.js"])
def test_a_name_that_was_made_to_lead_here_gets_nothing(bare_client: Any, path: str) -> None:
    answer = bare_client.get(path, headers={"host": "evil.example:8765"})
    assert answer.status_code == 421 and "evil.example" in answer.json()["mistakes"][0]


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://127.0.0.1:9999"])
def test_requests_of_other_sites_are_refused(bare_client: Any, origin: str) -> None:
    answer = bare_client.post("/api/compare", json={"text": GOOD}, headers={"origin": origin})
    assert answer.status_code == 403


def test_a_form_of_another_site_cannot_post(bare_client: Any) -> None:
    answer = bare_client.post("/api/compare", content=b'{"text": ""}', headers={"content-type": "text/plain"})
    assert answer.status_code == 415


def test_large_requests_are_refused_with_and_without_their_length(bare_client: Any) -> None:
    body = b'{"text": "' + b"x" * (2**20 + 1) + b'"}'
    headers = {"content-type": "application/json"}
    assert bare_client.post("/api/compare", content=body, headers=headers).status_code == 413
    in_parts = bare_client.post(
        "/api/compare", content=(body[i : i + 2**16] for i in range(0, len(body), 2**16)), headers=headers
    )
    assert in_parts.status_code == 400 and "more than" in in_parts.json()["mistakes"][0]


@pytest.mark.parametrize("path", ["/", "/static/page.css", "/nowhere"])
def test_every_answer_tells_the_browser_to_be_careful(bare_client: Any, path: str) -> None:
    headers = bare_client.get(path).headers
    assert "default-src 'none'" in headers["content-security-policy"]
    assert "unsafe" not in headers["content-security-policy"]
    assert headers["x-content-type-options"] == "nosniff" and headers["cache-control"] == "no-store"


@pytest.mark.parametrize(
    "path",
    [
        "/static/../app.py",
        "/static/%2e%2e/app.py",
        "/static/..%2f..%2fpyproject.toml",
        "/static//etc/passwd",
        "/etc/passwd",
    ],
)
def test_no_other_file_is_served(bare_client: Any, path: str) -> None:
    assert bare_client.get(path).status_code == 404


@pytest.mark.parametrize(
    "body",
    [
        "",
        "[]",
        "{",
        '{"text": 3}',
        '{"txt": ""}',
        '{"text": "\\ud800", "edits": 5}',
        '{"text": "", "edits": [{"path": "devices"}]}',
    ],
)
def test_requests_that_make_no_sense_are_one_line_a_mistake(bare_client: Any, body: str) -> None:
    answer = bare_client.post("/api/compare", content=body, headers={"content-type": "application/json"})
    assert answer.status_code == 400
    assert all(line and "\n" not in line and "Traceback" not in line for line in answer.json()["mistakes"])


def test_a_connection_dropped_within_its_request_is_no_defect() -> None:
    """An exception that reaches the server is logged with its traceback."""
    from web.app import application
    from web.settings import Settings

    app, _ = application(Settings())
    headers = [(b"host", b"127.0.0.1"), (b"content-type", b"application/json")]
    scope: Any = {
        "type": "http", "http_version": "1.1", "method": "POST", "scheme": "http", "path": "/api/compare",
        "raw_path": b"/api/compare", "query_string": b"", "root_path": "", "headers": headers,
    }  # fmt: skip
    said: list[Any] = []

    async def receive() -> Any:
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        said.append(message)

    asyncio.run(app(scope, receive, send))  # type: ignore[arg-type]
    assert said[0]["status"] == 400
