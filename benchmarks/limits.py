"""Do commands keep their time limit: seconds on the wall, of processors, and after Ctrl-C, by command, size and limit.

    python -m benchmarks.limits --write docs/results/limits.md

Each row is one process; where the machine is shared only the seconds of processors mean something.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from argparse import ArgumentParser
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from benchmarks.reporting.page import exit_code, show
from pipesched.files.atomic_write import write_whole

_COMMAND = "python -m benchmarks.limits --write docs/results/limits.md"
_PROBLEM = """name: {placement} p={devices} m={microbatches}
devices: {devices}
microbatches: {microbatches}
placement: {placement}
times: {{forward: 14316, backward: 14306, weight: 9639, transfer: 1619}}
memory: {{capacity: {capacity}, activation: 1}}
objective: span
"""
_POLL = 0.05  # s between looks at what a process has used
_PLAN = Path("examples/plans/kimi-k2-80gb.yaml")


class Row(NamedTuple):
    """A command with its limit in s; `interrupt`: Ctrl-C is sent after so many seconds of processors.

    Of `layouts` the devices are GPUs, and the placement names the model.
    """

    command: str
    placement: str
    devices: int
    microbatches: int
    limit: int
    files: bool = False
    interrupt: float | None = None


ROWS = (
    Row("solve", "v-shape", 16, 64, 20),
    Row("solve", "v-shape", 16, 4096, 20),
    Row("solve", "v-shape", 16, 1024, 10, files=True),
    Row("solve", "linear", 64, 4096, 10),
    Row("plan", "free", 16, 1024, 12),
    Row("plan", "free", 32, 4096, 12),
    Row("compare", "v-shape", 16, 4096, 20),
    Row("frontier", "v-shape", 16, 64, 20),
    Row("sweep", "v-shape", 16, 64, 20),
    Row("layouts", "llama3-70b", 256, 64, 20),
    Row("solve", "linear", 64, 4096, 60, interrupt=3),
    Row("plan", "free", 32, 4096, 60, interrupt=3),
    Row("compare", "linear", 64, 4096, 60, interrupt=3),
    Row("frontier", "v-shape", 16, 64, 60, interrupt=3),
    Row("sweep", "v-shape", 16, 64, 60, interrupt=3),
    Row("layouts", "llama3-70b", 256, 64, 60, interrupt=3),
)
# A sweep's limit is that of all its cells.
_CELLS = ["--set", "microbatches=32..128:32"]
_CONFIGS = Path("benchmarks/data/configs")


class Measured(NamedTuple):
    """Seconds on the wall, of processors, from Ctrl-C to the end, and of processors since; and the exit code."""

    wall: float
    processor: float
    after_interrupt: float | None
    processor_after: float | None
    code: int


def document(row: Row) -> str:
    """The problem or plan file of a row."""
    if row.command != "plan":
        capacity = row.devices * (2 if row.placement == "v-shape" else 1)
        return _PROBLEM.format(**row._asdict(), capacity=capacity)
    keys = {"devices": row.devices, "microbatches": row.microbatches}
    lines = _PLAN.read_text(encoding="utf-8").splitlines()
    found = []
    for text in lines:
        key = text.partition(":")[0]
        found.append(f"{key}: {keys[key]}" if key in keys else text)
    return "\n".join(found)


def arguments(row: Row, folder: Path) -> list[str]:
    """The command line of a row; its file is written to the folder."""
    if row.command == "layouts":
        batch = ["--gpus", str(row.devices), "--microbatches", str(row.microbatches), "--hardware", "h100-80gb"]
        return [row.command, str(_CONFIGS / f"{row.placement}.json"), *batch, "--time-limit", str(row.limit)]
    path = str(write_whole(folder / "file.yaml", document(row)))
    if row.command == "sweep":
        return [row.command, path, *_CELLS, "--total-time", str(row.limit), "--store", str(folder / "sweep.sqlite")]
    return [row.command, path, "--time-limit", str(row.limit), *(["-o", str(folder)] if row.files else [])]


def measured(row: Row) -> Measured:
    """The row run once, in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "pipesched", *arguments(row, Path(folder))]
        began, asked, before = time.monotonic(), None, None
        process = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
        )
        if row.interrupt is not None:
            while process.poll() is None and processor_seconds(process.pid, began) < row.interrupt:
                time.sleep(_POLL)
            asked, before = time.monotonic(), processor_seconds(process.pid, began)
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGINT)  # a terminal sends it to all processes of the command
        _, status, used = os.wait4(process.pid, 0)
        ended = time.monotonic()
    code = process.returncode = os.waitstatus_to_exitcode(status)
    processor = used.ru_utime + used.ru_stime
    after = None if asked is None else ended - asked
    processor_after = None if before is None else processor - before
    return Measured(ended - began, processor, after, processor_after, code)


def processor_seconds(group: int, began: float) -> float:
    """Seconds so far of a group's processes and of their ended children; on the wall where the system has no /proc."""
    if not Path(f"/proc/{os.getpid()}/stat").exists():
        return time.monotonic() - began
    ticks = 0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
        except OSError:  # it has ended
            continue
        if int(fields[2]) == group:
            ticks += sum(map(int, fields[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")


def line(row: Row, found: Measured) -> str:
    """A row of the table."""
    devices = f"{row.devices} GPUs" if row.command == "layouts" else f"p={row.devices}"
    size = f"{row.placement}, {devices}, m={row.microbatches:,}"
    after, processor_after = (
        "" if seconds is None else f"{seconds:.1f}" for seconds in (found.after_interrupt, found.processor_after)
    )
    command = row.command + (" -o" if row.files else "")
    cells = (
        command,
        size,
        row.limit,
        f"{found.wall:.1f}",
        f"{found.processor:.1f}",
        after,
        processor_after,
        found.code,
    )
    return f"| {' | '.join(map(str, cells))} |"


def main() -> int:
    """Measure all rows, and show them."""
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--write", type=Path, metavar="PAGE", help="put the table between the markers of this page")
    parser.add_argument("--rows", type=int, nargs="+", metavar="N", help="these rows, from 1 on (default: all)")
    args = parser.parse_args()
    head = [
        "| command | size | limit (s) | wall (s) | processors (s) | after Ctrl-C (s) | processors (s) | exit code |",
        "|---|---|---|---|---|---|---|---|",
    ]
    rows = ROWS if args.rows is None else [ROWS[number - 1] for number in args.rows]
    table = [line(row, measured(row)) for row in rows]
    machine = f"{os.cpu_count()} processors, load {os.getloadavg()[1]:.1f}, Python {sys.version.split()[0]}."
    show(args.write, _COMMAND, "\n".join([*head, *table, "", machine]))
    return 0


if __name__ == "__main__":
    sys.exit(exit_code(main))
