"""The queue of solves: turns, places, stopping, one a tab, what is killed and what is forgotten."""

from __future__ import annotations

import multiprocessing
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from tests.support.web_answers import GOOD, compared, events, of_kind

# No optimum is proved within seconds.
HARD = (
    "devices: 6\nmicrobatches: 20\nplacement: interleaved\nchunks: 2\nmemory: {capacity: 10}\n"
    "times: {forward: [99, 147, 103, 55, 83, 115, 112, 101, 150, 88, 111, 95], transfer: 17,\n"
    "  backward: [124, 77, 114, 67, 86, 67, 146, 62, 129, 82, 118, 140],\n"
    "  weight: [38, 59, 32, 29, 62, 80, 32, 65, 75, 60, 46, 90]}\n"
)


def begin(client: Any, tab: str, seconds: float = 60, text: str = HARD) -> Any:
    return client.post("/api/solves", json={"text": text, "seconds": seconds, "workers": 1, "tab": tab})


def wait_for_a_schedule(client: Any, name: str) -> None:
    while client.post("/api/files", json={"solve": name, "format": "schedule.json"}).status_code == 400:
        time.sleep(0.1)


class Watching:
    """The events of a solve, taken on a thread of their own; `wait` for one of a kind."""

    def __init__(self, client: Any, name: str) -> None:
        self.found: list[tuple[str, Any]] = []
        self._thread = threading.Thread(target=self._take, args=(client, name), daemon=True)
        self._thread.start()

    def _take(self, client: Any, name: str) -> None:
        self.found = events(client.get(f"/api/solves/{name}/events"))

    def end(self) -> list[tuple[str, Any]]:
        self._thread.join(60)
        assert not self._thread.is_alive()
        return self.found


@pytest.fixture(scope="module")
def client(client_of: Callable[..., Any]) -> Any:
    return client_of(solves=1, waiting=1)


def test_turns_places_and_stopping(client: Any) -> None:
    first = begin(client, "first-tab").json()["solve"]
    watching = Watching(client, first)
    second = begin(client, "second-tab").json()["solve"]
    assert "stop it first" in begin(client, "second-tab").json()["mistakes"][0]
    assert "waiting already" in begin(client, "third-tab").json()["mistakes"][0]
    assert of_kind(compared(client, GOOD), "row"), "a solve holds nobody else up"
    waited = Watching(client, second)
    wait_for_a_schedule(client, first)
    client.post(f"/api/solves/{first}/stop", json={})
    found = watching.end()
    solution = of_kind(found, "solution")[0]
    assert solution["interrupted"] and solution["value"] >= solution["lower_bound"] > 0
    assert client.post("/api/files", json={"solve": first, "format": "schedule.json"}).status_code == 200
    wait_for_a_schedule(client, second)
    client.post(f"/api/solves/{second}/stop", json={})
    seen = waited.end()
    assert of_kind(seen, "queue") == [{"place": 1, "waiting": 1}] and of_kind(seen, "solution")


def test_a_solve_that_waits_is_stopped_at_once(client: Any) -> None:
    first, second = begin(client, "first-tab").json()["solve"], begin(client, "second-tab").json()["solve"]
    client.post(f"/api/solves/{second}/stop", json={})
    assert "before its turn" in of_kind(events(client.get(f"/api/solves/{second}/events")), "failed")[0]
    client.post(f"/api/solves/{first}/stop", json={})
    assert of_kind(events(client.get(f"/api/solves/{first}/events")), "solution")


def test_a_broken_problem_ends_its_solve(client: Any) -> None:
    name = begin(client, "first-tab", text="devices: 2\n").json()["solve"]
    (mistakes,) = of_kind(events(client.get(f"/api/solves/{name}/events")), "mistakes")
    assert any("microbatches: missing" in line for line in mistakes)


def test_what_nobody_watches_is_forgotten(client_of: Callable[..., Any]) -> None:
    client = client_of(solves=1, idle_seconds=0.2)
    name = begin(client, "first-tab").json()["solve"]
    for _ in range(600):
        time.sleep(0.1)
        answer = client.post(f"/api/solves/{name}/stop", json={})
        if answer.status_code == 400:
            break
    assert "not known" in answer.json()["mistakes"][0]
    # Its process has ended, too: the next one gets its turn, unless a busy machine was slow to watch that one as well.
    for number in range(20):
        following = begin(client, f"following-tab-{number}", seconds=1, text=GOOD).json()["solve"]
        solved = of_kind(events(client.get(f"/api/solves/{following}/events")), "solution")
        if solved:
            break
    assert solved


def test_a_process_that_dies_is_said_and_what_it_found_is_kept(client: Any) -> None:
    name = begin(client, "first-tab").json()["solve"]
    wait_for_a_schedule(client, name)
    # The one that goes on searching; others end by themselves.
    for process in multiprocessing.active_children():
        process.kill()
    assert "ended by the system" in of_kind(events(client.get(f"/api/solves/{name}/events")), "failed")[0]
    assert client.post("/api/files", json={"solve": name, "format": "schedule.json"}).status_code == 200
    assert of_kind(compared(client, GOOD), "row")


def test_what_takes_too_long_is_ended(client_of: Callable[..., Any]) -> None:
    hurried = client_of(quick_seconds=0.001)
    assert "not done within" in of_kind(compared(hurried, GOOD), "late")[0]
