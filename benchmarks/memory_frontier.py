"""The frontier of GPT 1.5B for four placements at equal device memory: one sweep, every point with its gap.

    python -m benchmarks.memory_frontier --write docs/sweeps.md

Runs `sweep` on examples/memory-frontier.yaml within `--total-time` seconds and keeps all in `-o`; the same command
again goes on from there. With `--write` the table goes into the page, and the picture beside it into docs/images.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.reporting.machine import machine
from benchmarks.reporting.page import exit_code, put, table
from pipesched.errors import BadInput
from pipesched.problem.formatting import plain

COMMAND = "python -m benchmarks.memory_frontier"
ROOT = Path(__file__).resolve().parents[1]
PICTURE = "memory-frontier.png"


def main(arguments: list[str] | None = None) -> int:
    """Sweep, print, write."""
    parser = ArgumentParser(description=__doc__, formatter_class=RawDescriptionHelpFormatter)
    parser.add_argument("--file", type=Path, default=ROOT / "examples" / "memory-frontier.yaml")
    parser.add_argument("--total-time", type=float, default=840.0, metavar="S")
    parser.add_argument("-o", "--output", type=Path, default=Path("frontier"), metavar="DIR")
    parser.add_argument("--jobs", type=int, metavar="N")
    parser.add_argument("--write", type=Path, metavar="PAGE")
    args = parser.parse_args(arguments)
    return exit_code(lambda: _run(args))


def _run(args: Namespace) -> int:
    command = [sys.executable, "-m", "pipesched", "sweep", str(args.file), "--total-time", str(args.total_time)]
    command += ["-o", str(args.output), "--json", *(["--jobs", str(args.jobs)] if args.jobs else [])]
    done = subprocess.run(
        command, env=os.environ | {"PYTHONPATH": str(ROOT)}, stdout=subprocess.PIPE, text=True, check=False
    )
    if done.returncode:
        raise BadInput(f"{args.file}: the sweep ended with exit code {done.returncode}")
    text = markdown(json.loads(done.stdout))
    load = f"Load average over fifteen minutes: {os.getloadavg()[2]:.1f}."
    text += f"\n\n{args.total_time:.0f} seconds for all points. {machine(0, os.cpu_count() or 1)}. {load}"
    print(text)
    if args.write:
        put(args.write, COMMAND, text)
        shutil.copy(args.output / "memory.png", args.write.parent / "images" / PICTURE)
    return 0


def markdown(found: Mapping[str, Any]) -> str:
    """A row for each capacity and a column for each placement: the best span and its gap."""
    cells = {(cell["at"]["memory.capacity"], cell["at"]["placement"]): cell for cell in found["cells"]}
    memories, placements = (list(dict.fromkeys(part)) for part in zip(*cells, strict=True))
    head = (f"memory of a device, {found['memory_unit']}; time, {found['time_unit']} (gap)", *placements)
    return table(head, [[plain(m), *(_said(cells[m, p]) for p in placements)] for m in memories])


def _said(cell: Mapping[str, Any]) -> str:
    if cell["value"] is None:
        return str(cell["status"])
    gap = "optimal" if cell["status"] == "optimal" else f"{100 * cell['gap']:.2f} %"
    return f"{cell['value']:.1f} ({gap})"


if __name__ == "__main__":
    sys.exit(main())
