"""How the server begins: where it listens, what it says of that, and what it refuses."""

from __future__ import annotations

import builtins
import socket
from typing import Any

import pytest

from commands.main import main
from web import server
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
