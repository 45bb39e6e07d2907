"""Calls of the page's server, which is asked without a network: what none of its answers may be."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

from benchmarks.matrix.commands_of import DEFECT
from commands.shared.catalogue import Exit

_URL = "http://127.0.0.1:8765"
_OK, _MISTAKE = 200, (400, 404, 409, 413, 422)


@cache
def _client() -> Any:
    """One server for all cases of a process."""
    from starlette.testclient import TestClient

    from web.app import application
    from web.settings import Settings

    client = TestClient(application(Settings(workers=1))[0], base_url=_URL, raise_server_exceptions=False)
    return client.__enter__()


def asked_of_the_page(text: str, seconds: float) -> Iterator[tuple[str, Exit, str]]:
    """The call, how a command would have ended, and the fault of its answer if it has one."""
    client = _client()
    solve = {"text": text, "seconds": seconds, "workers": 1, "tab": "of-the-matrix"}
    calls: list[tuple[str, dict[str, Any]]] = [
        ("compare", {"text": text, "edits": []}),
        ("chart", {"text": text, "schedule": "1f1b"}),
        ("files", {"text": text, "schedule": "1f1b", "format": "chrome-trace"}),
        ("solves", solve),
    ]
    for name, body in calls:
        answer = client.post(f"/api/{name}", json=body)
        yield name, *_judged(answer)
        if name == "solves" and answer.status_code == _OK:
            yield "events", *_judged(client.get(f"/api/solves/{answer.json()['solve']}/events"))


def _judged(answer: Any) -> tuple[Exit, str]:
    """The exit of a call; a fault where the server failed, or reports a defect."""
    if DEFECT in answer.text or "Traceback" in answer.text:
        at = max(answer.text.find(DEFECT), 0)
        return Exit.NO, f"defect: {answer.text[at : at + 300]}"
    if answer.status_code == _OK:
        return Exit.DONE, ""
    if answer.status_code in _MISTAKE and answer.json().get("mistakes"):
        return Exit.BAD_INPUT, ""
    return Exit.NO, f"status {answer.status_code}: {answer.text[:200]}"
