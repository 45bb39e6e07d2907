"""Stress test of micro-batches of several pieces: tiny problems against every order of every device.

    python -m benchmarks.proofs.piece_attack --count 10000 --resume --write docs/results/sequence-chunks.md

The optimum of a solve, all bounds, the validator and `check` against a search that knows the definitions alone. Counts
are kept in a file after every round; --resume adds to them. Exit code 1 if something is wrong.
"""

from __future__ import annotations

import json
import sys
import time
from argparse import ArgumentParser
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random

from benchmarks.reporting.page import exit_code, put_or_print, table
from pipesched.errors import Deadlock, Disagreement
from pipesched.files.atomic_write import write_whole
from tests.support.brute_force import TooManyOrdersError
from tests.support.piece_problems import compared, features, tiny_pieces

COMMAND = "python -m benchmarks.proofs.piece_attack"
_RESULTS = Path(__file__).with_name("piece_attack.json")
_ROUND = 50
_OUTCOMES = ("problems", "wrong", "nothing fits", "a bound attained", "too many orders")

Counts = dict[str, Counter[str]]


def count(number: int, counts: Counts) -> None:
    """Compare the problem of this number, and count what was seen under each of its features."""
    one = tiny_pieces(Random(number))
    try:
        seen: tuple[str, ...] = ("problems", *compared(one))
    except TooManyOrdersError:
        seen = ("too many orders",)
    except (AssertionError, Deadlock, Disagreement) as wrong:
        seen = ("problems", "wrong")
        print(f"number {number}: {wrong}", file=sys.stderr, flush=True)
    for name in features(one):
        counts.setdefault(name, Counter()).update(seen)


def main(arguments: Sequence[str] | None = None) -> int:
    """Attack until there are enough problems, or the time is over; 1 if something is wrong."""
    parser = ArgumentParser("python -m benchmarks.proofs.piece_attack", description=__doc__)
    parser.add_argument("--count", type=int, default=10_000, help="problems (default 10000)")
    parser.add_argument("--seconds", type=float, default=3600, help="in all at most (default 3600)")
    parser.add_argument("--results", type=Path, default=_RESULTS, metavar="FILE")
    parser.add_argument("--resume", action="store_true", help="add to the counts of the file")
    parser.add_argument("--write", type=Path, metavar="PAGE", help="the page to write")
    args = parser.parse_args(arguments)
    return exit_code(lambda: run(args.count, args.seconds, args.results, args.resume, args.write))


def run(most: int, seconds: float, file: Path, resume: bool, page: Path | None) -> int:
    """In rounds; numbers go on where the counts of the file end."""
    known: Mapping[str, Mapping[str, int]] = (
        json.loads(file.read_text(encoding="utf-8")) if resume and file.exists() else {}
    )
    counts: Counts = {name: Counter(found) for name, found in known.items()}
    whole = counts.setdefault("all", Counter())
    end = time.monotonic() + seconds
    while whole["problems"] < most and time.monotonic() < end:
        for _ in range(min(_ROUND, most - whole["problems"])):
            count(whole["problems"] + whole["too many orders"], counts)
        write_whole(file, json.dumps(counts, indent=1, sort_keys=True) + "\n")
    rows = sorted(counts.items(), key=lambda one: -one[1]["problems"])
    text = table(("with", *_OUTCOMES), [[name, *(str(found[key]) for key in _OUTCOMES)] for name, found in rows])
    put_or_print(page, COMMAND, text)
    return 1 if whole["wrong"] else 0


if __name__ == "__main__":
    sys.exit(main())
