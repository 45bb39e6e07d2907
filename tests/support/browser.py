"""A headless Chromium for tests of pages: the machine's own or the one that playwright installed, else the test is skipped."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

# Nothing that the browser does by itself may leave the machine.
QUIET = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync"),
)


# By how many pixels a page is wider than its window.
OVERFLOW = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
# The share of its window that the time axis of the narrowest chart has.
TIMES = (
    "Math.min(...[...document.querySelectorAll('.pipesched-canvases .u-over')].map((e) => e.clientWidth)) / innerWidth"
)


@contextmanager
def chromium() -> Iterator[Any]:
    """Context that yields a `playwright.sync_api.Browser`; its pages are closed with it."""
    api = pytest.importorskip("playwright.sync_api", reason="the extra `browser` is not installed")
    with api.sync_playwright() as playwright:
        found = shutil.which("chromium") or shutil.which("google-chrome") or playwright.chromium.executable_path
        if not Path(found).exists():
            pytest.skip("there is no Chromium: install one, or `python -m playwright install chromium`")
        browser = playwright.chromium.launch(executable_path=found, args=list(QUIET))
        try:
            yield browser
        finally:
            browser.close()


def complaints_of(page: Any) -> list[str]:
    """Return a list that collects a page's faults from now on: console warnings, uncaught errors, requests to the
    network."""
    complaints: list[str] = []
    page.on(
        "console", lambda message: complaints.append(message.text) if message.type in ("error", "warning") else None
    )
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on(
        "request",
        lambda request: (
            complaints.append(request.url) if "://" in request.url[:8] and not request.url.startswith("file:") else None
        ),
    )
    return complaints
