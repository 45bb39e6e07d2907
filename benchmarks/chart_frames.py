"""How long a frame of the interactive chart takes while it is moved and zoomed, in a headless Chromium without a GPU.

python -m benchmarks.chart_frames [--write docs/results/chart-frames.md]
"""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import median, quantiles
from typing import Any

from benchmarks.reporting.machine import machine
from benchmarks.reporting.page import put, table
from heuristics.catalogue import HEURISTICS
from pipesched.files.problem_file import problem_from
from pipesched.simulation.simulator import simulate
from plots.html.page import page

SIZES = ((32, 256), (64, 522))  # devices and micro-batches; a pass of each of three kinds
SHARES = (1.0, 0.5, 0.2, 0.05, 0.01)  # of all time, how much is shown
FRAMES = 60
TIMES = {"forward": 18.522, "backward": 18.086, "weight": 9.337, "transfer": 0.601}
QUIET = ("--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update")

# Moves and zooms a little in each frame; the time between two frames, and the script's own part of it.
MEASURE = """async ([share, frames]) => {
  const chart = window.shown, frame = () => new Promise((done) => requestAnimationFrame(done));
  chart.show(0, Infinity);
  await frame(); await frame();
  const end = chart.view().to, wide = share * end, times = [];
  await frame();
  let before = performance.now();
  for (let i = 0; i < frames; i++) {
    const from = ((end - wide) * i) / frames;
    chart.show(from, from + wide * (1 - 0.002 * i));
    await frame();
    times.push(performance.now() - before);
    before = performance.now();
  }
  return times;
}"""
# Keeps the chart that the page makes where MEASURE finds it.
CATCH = """let held; Object.defineProperty(window, "pipesched", {get: () => held, set: (made) => {
  held = {...made, chart: (...all) => (window.shown = made.chart(...all))};
}});"""


def frames(browser: Any, devices: int, microbatches: int, folder: Path) -> list[list[str]]:
    """A row of the table for each share of time shown."""
    document = {"devices": devices, "microbatches": microbatches, "times": TIMES, "memory": {"activation": 1}}
    problem = problem_from(document, "benchmark")
    timeline = simulate(problem, HEURISTICS["zb-h1"].order(problem))
    file = folder / f"{devices}x{microbatches}.html"
    file.write_text(page(timeline, "benchmark", ""), encoding="utf-8")
    shown = browser.new_page(viewport={"width": 1280, "height": 900})
    shown.add_init_script(CATCH)
    shown.goto(file.as_uri())
    shown.wait_for_function("window.shown")
    size = [f"{devices} × {microbatches}", f"{len(timeline.schedule.columns):,}", f"{file.stat().st_size / 1e3:,.0f}"]
    devtools = shown.context.new_cdp_session(shown)
    devtools.send("Performance.enable", {"timeDomain": "threadTicks"})
    rows = []
    for share in SHARES:
        before = worked(devtools)
        times = shown.evaluate(MEASURE, [share, FRAMES])
        each = 1000 * (worked(devtools) - before) / (FRAMES + 3)
        rows.append(
            [*size, f"{100 * share:g} %", f"{each:.1f}", f"{median(times):.1f}", f"{quantiles(times, n=20)[-1]:.1f}"]
        )
    shown.close()
    return rows


def worked(devtools: Any) -> float:
    """CPU seconds of the page's thread until now; unlike the time between frames it is the same on a busy machine."""
    metrics = devtools.send("Performance.getMetrics")["metrics"]
    return float(next(one["value"] for one in metrics if one["name"] == "TaskDuration"))


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table, or put it into a page."""
    from playwright.sync_api import sync_playwright

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", type=Path, help="the page that holds the table")
    parser.add_argument("--chromium", default="/usr/bin/chromium", help="the browser (default: /usr/bin/chromium)")
    args = parser.parse_args(arguments)
    rows: list[list[str]] = []
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as folder:
        browser = playwright.chromium.launch(executable_path=args.chromium, args=list(QUIET))
        for devices, microbatches in SIZES:
            rows += frames(browser, devices, microbatches, Path(folder))
        version = browser.version
        browser.close()
    head = (
        "devices × micro-batches",
        "passes",
        "page (kB)",
        "shown",
        "CPU a frame (ms)",
        "median frame (ms)",
        "19 of 20 (ms)",
    )
    load = f"load average {os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else ""
    text = f"{machine(0, 1, 'playwright')}; Chromium {version}, no GPU; {load}\n\n{table(head, rows)}"
    if args.write:
        put(args.write, "python -m benchmarks.chart_frames", text)
    else:
        print(text)


if __name__ == "__main__":
    main()
