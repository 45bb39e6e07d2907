"""Values, certificates and messages of all examples and some 360 drawn pairs of features, compared with those stored.

    python -m benchmarks.golden            what differs from the stored values; exit code 1 if anything does
    python -m benchmarks.golden --store    stores those of now
    python -m benchmarks.golden --draw     draws new documents, of the features that the matrix has, and stores

For a change that moves code and is meant to change nothing: run it after every step. One worker; work is counted, not
timed, so that the answers do not depend on the machine's load.
"""

from __future__ import annotations

import json
import multiprocessing
import sys
from argparse import ArgumentParser, RawDescriptionHelpFormatter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.golden.cases import draw, files
from benchmarks.golden.record import Record, record
from benchmarks.reporting.page import exit_code
from pipesched.files.atomic_write import write_whole

STORED = Path(__file__).with_name("stored.json")
_MOST_LINES, _MOST_LETTERS = 1_000, 400


def stored() -> dict[str, Record]:
    """The stored records by the names of files."""
    found: dict[str, Record] = json.loads(STORED.read_text(encoding="utf-8"))
    return found


def differences(name: str, then: Any, now: Any) -> Iterator[str]:
    """A line for each value that is not as it was stored."""
    if isinstance(then, Mapping) and isinstance(now, Mapping):
        for key in dict.fromkeys((*then, *now)):
            yield from differences(f"{name}: {key}", then.get(key), now.get(key))
    elif then != now:
        yield f"{name}: stored {_short(then)}, now {_short(now)}"


def _short(value: Any) -> str:
    return text if len(text := str(value)) <= _MOST_LETTERS else f"{text[:_MOST_LETTERS]} ..."


def main(arguments: Sequence[str] | None = None) -> int:
    """Compare, or store; 1 if anything differs."""
    parser = ArgumentParser(
        "python -m benchmarks.golden", description=__doc__, formatter_class=RawDescriptionHelpFormatter
    )
    parser.add_argument("--store", action="store_true", help="store the values of now")
    parser.add_argument("--draw", action="store_true", help="draw the documents anew, and store their values")
    parser.add_argument("--only", default="", metavar="TEXT", help="files whose name has this in it")
    parser.add_argument("--workers", type=int, default=1, help="processes")
    args = parser.parse_args(arguments)
    if args.only and (args.store or args.draw):
        parser.error("--only: found with --store or --draw; allowed: all files")
    if args.draw:
        draw()
    chosen = [file for file in files() if args.only in file.name]
    with multiprocessing.get_context("spawn").Pool(args.workers) as pool:
        found = dict(zip((file.name for file in chosen), pool.imap(record, chosen), strict=True))
    if args.store or args.draw:
        rows = ",\n".join(f"{json.dumps(name)}: {json.dumps(one, ensure_ascii=False)}" for name, one in found.items())
        write_whole(STORED, f"{{\n{rows}\n}}\n")
        return 0
    then = {name: one for name, one in stored().items() if args.only in name}
    lines = [
        line for name in dict.fromkeys((*then, *found)) for line in differences(name, then.get(name), found.get(name))
    ]
    for line in lines[:_MOST_LINES]:
        print(line)
    print(f"{len(found)} files, {len(lines)} differences")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(exit_code(main))
