"""Stress test of chains that feed each other, pieces or modules, and of collectives: every order of tiny problems.

    python -m benchmarks.proofs.piece_attack --count 10000 --resume --write docs/results/sequence-chunks.md
    python -m benchmarks.proofs.piece_attack --problems modules --resume --write docs/results/sequence-chunks.md
    python -m benchmarks.proofs.piece_attack --problems saving --resume --write docs/results/sequence-chunks.md
    python -m benchmarks.proofs.piece_attack --problems collectives --resume --write docs/results/collectives.md

The optimum of a solve, all bounds, the validator and `check` against a search that knows the definitions alone. Counts
are kept in a file after every round; --resume adds to them. Exit code 1 if something is wrong.
"""

from __future__ import annotations

import json
import sys
import time
from argparse import ArgumentParser
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from random import Random

from benchmarks.reporting.page import exit_code, show, table
from pipesched.errors import Deadlock, Disagreement
from pipesched.files.atomic_write import write_whole
from pipesched.problem.problem import Problem
from tests.support.brute_force import TooManyOrdersError
from tests.support.collective_problems import tiny_collectives
from tests.support.module_problems import tiny_modules
from tests.support.piece_problems import compared, features, tiny_pieces, tiny_saving_pieces

Maker = Callable[[Random], Problem]
COMMAND = "python -m benchmarks.proofs.piece_attack"
_MAKERS: dict[str, Maker] = {
    "pieces": tiny_pieces,
    "modules": tiny_modules,
    "saving": tiny_saving_pieces,
    "collectives": tiny_collectives,
}
_ROUND = 50
_OUTCOMES = ("problems", "wrong", "nothing fits", "a bound attained", "too many orders")

Counts = dict[str, Counter[str]]


def count(number: int, counts: Counts, make: Maker = tiny_pieces) -> None:
    """Compare the problem of this number, and count what was seen under each of its features."""
    one = make(Random(number))
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
    parser.add_argument("--problems", choices=[*_MAKERS], default="pieces", help="of which kind (default pieces)")
    parser.add_argument("--results", type=Path, metavar="FILE")
    parser.add_argument("--resume", action="store_true", help="add to the counts of the file")
    parser.add_argument("--write", type=Path, metavar="PAGE", help="the page to write")
    args = parser.parse_args(arguments)
    file = args.results or Path(__file__).with_name(f"{args.problems.removesuffix('s')}_attack.json")
    return exit_code(lambda: run(args.problems, args.count, args.seconds, file, args.resume, args.write))


def run(problems: str, most: int, seconds: float, file: Path, resume: bool, page: Path | None) -> int:
    """In rounds; numbers go on where the counts of the file end."""
    known: Mapping[str, Mapping[str, int]] = (
        json.loads(file.read_text(encoding="utf-8")) if resume and file.exists() else {}
    )
    counts: Counts = {name: Counter(found) for name, found in known.items()}
    whole = counts.setdefault("all", Counter())
    end = time.monotonic() + seconds
    while whole["problems"] < most and time.monotonic() < end:
        for _ in range(min(_ROUND, most - whole["problems"])):
            count(whole["problems"] + whole["too many orders"], counts, _MAKERS[problems])
        write_whole(file, json.dumps(counts, indent=1, sort_keys=True) + "\n")
    rows = sorted(counts.items(), key=lambda one: -one[1]["problems"])
    text = table(("with", *_OUTCOMES), [[name, *(str(found[key]) for key in _OUTCOMES)] for name, found in rows])
    show(page, COMMAND if problems == "pieces" else f"{COMMAND} --problems {problems}", text)
    return 1 if whole["wrong"] else 0


if __name__ == "__main__":
    sys.exit(main())
