"""The atlas of published schedules: `python -m benchmarks.atlas [--devices 4,8] [--again --units 2] [--draw]`.

Solves the cells that the file of rows does not have, each checked and stored as it ends, so that the same command goes
on where it stopped; then draws the maps and writes docs/atlas.md and the table that `solve` reads. With --again the
cells that are not proved are searched on, where --units is more than they had, with --timed, or with the subsolvers of
--only.
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections.abc import Sequence
from pathlib import Path

from benchmarks.atlas.grid import DEVICES, MEMORIES
from benchmarks.atlas.page import write_all
from benchmarks.atlas.row import read_rows
from benchmarks.atlas.settle import Effort
from benchmarks.atlas.survey import survey
from benchmarks.reporting.page import exit_code
from pipesched.errors import BadInput, did_you_mean
from solver.engine.engine import ENGINE

COMMAND = "python -m benchmarks.atlas"
ROWS = Path(__file__).resolve().parents[1] / "data" / "atlas.jsonl"


def main(arguments: Sequence[str] | None = None) -> int:
    """0; 2 for a wrong argument, 130 where it was interrupted."""
    parser = ArgumentParser(COMMAND, description=__doc__, formatter_class=RawDescriptionHelpFormatter)
    parser.add_argument("--devices", default=",".join(map(str, DEVICES)), metavar="P,…", help="numbers of devices")
    parser.add_argument(
        "--memory", default=",".join(map(str, MEMORIES)), metavar="SHARE,…", help="shares of 1F1B's memory"
    )
    parser.add_argument("--units", type=float, default=0.2, help="of CP-SAT's work for each search (default 0.2)")
    parser.add_argument(
        "--processor-seconds", type=float, default=10, metavar="S", help="most for each search (default 10)"
    )
    parser.add_argument("--timed", action="store_true", help="count no work: processor seconds are the only limit")
    parser.add_argument("--again", action="store_true", help="search on in cells that are not proved")
    parser.add_argument(
        "--only", default="", metavar="NAME,…", help="with these subsolvers alone, for the processor seconds"
    )
    parser.add_argument("--draw", action="store_true", help="search nothing; write maps, page and table of the rows")
    parser.add_argument("--rows", type=Path, default=ROWS, metavar="FILE", help="the file of rows")
    parser.add_argument("--store", type=Path, default=Path("results/atlas.sqlite"), metavar="FILE", help="schedules")
    return exit_code(lambda: _run(parser.parse_args(arguments)))


def _run(args: Namespace) -> int:
    if not args.units > 0 or not args.processor_seconds > 0:
        raise BadInput("--units, --processor-seconds: found a number that is not above 0; allowed: above 0")
    if not args.draw:
        try:
            devices = [int(p) for p in args.devices.split(",")]
        except ValueError:
            raise BadInput(f"--devices: found {args.devices!r}; allowed: numbers such as 4,8") from None
        memories = [memory for memory in MEMORIES if str(memory) in args.memory.split(",")]
        if len(memories) < len(args.memory.split(",")):
            allowed = ", ".join(map(str, MEMORIES))
            raise BadInput(f"--memory: found {args.memory}; allowed: some of {allowed}, with commas")
        only = tuple(name for name in args.only.split(",") if name)
        for name in only:
            if name not in (known := sorted({one.name for one in ENGINE.members})):
                raise BadInput(f"--only: found {name!r}; allowed: subsolvers{did_you_mean(name, known)}")
        effort = Effort(None if args.timed else args.units, args.processor_seconds, only)
        try:
            survey(devices, memories, effort, args.again, args.rows, args.store, lambda line: print(line, flush=True))
        except KeyboardInterrupt:
            print("interrupted: the same command goes on from here", file=sys.stderr)
            return 130
    rows = read_rows(args.rows)
    if not rows:
        raise BadInput(f"{args.rows}: found no rows; allowed: a file that this command wrote")
    for path in write_all([*rows.values()]):
        print(f"wrote {path}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
