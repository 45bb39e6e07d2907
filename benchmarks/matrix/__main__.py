"""All pairs of features of problem and plan files, then triples, tiny, through the search, exact models and commands.

    python -m benchmarks.matrix --pairs --triples 10000 --seed 1 --workers 2 --resume [--write docs/results/matrix.md]

Outcomes are kept one a line in the folder given by --store; --resume runs only what is not there yet. Every pair goes
through every command, of triples one in a hundred; the others through the search, `validate`, `check` and some.
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser, RawDescriptionHelpFormatter
from collections.abc import Sequence
from pathlib import Path

from benchmarks.matrix.page import markdown
from benchmarks.matrix.store import Lines
from benchmarks.matrix.work import run_all, works
from benchmarks.reporting.page import exit_code, machine, show

COMMAND = "python -m benchmarks.matrix --write docs/results/matrix.md"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what is asked for, print the table; 1 if there is a fault."""
    parser = ArgumentParser(COMMAND, description=__doc__, formatter_class=RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", action="store_true", help="every switch, and every pair of them")
    parser.add_argument("--triples", type=int, default=0, metavar="N", help="so many drawn triples")
    parser.add_argument("--thorough", type=int, default=1, metavar="N", help="one pair in N through every command")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--workers", type=int, default=1, help="processes")
    parser.add_argument("--store", type=Path, default=Path("matrix-outcomes"), metavar="DIR")
    parser.add_argument("--resume", action="store_true", help="keep what the store has; else it is emptied")
    parser.add_argument("--write", type=Path, metavar="PAGE", help="the page to write, docs/results/matrix.md")
    args = parser.parse_args(arguments)
    args.store.mkdir(parents=True, exist_ok=True)
    if not args.resume:
        for old in args.store.glob("*.jsonl"):
            old.unlink()
    stored = [Lines(path) for path in sorted(args.store.glob("*.jsonl"))]
    known = set().union(*(lines.known() for lines in stored))
    todo = [one for one in works(args.pairs, args.triples, args.seed, args.thorough) if one[:3] not in known]
    run_all(todo, args.store, args.workers)
    every = [*{(one["kind"], tuple(one["names"]), one["seed"]): one
               for path in sorted(args.store.glob("*.jsonl")) for one in Lines(path)}.values()]  # fmt: skip
    show(args.write, COMMAND, markdown(every, machine(args.seed, args.workers, "numba")))
    return 1 if any(one["faults"] for one in every) else 0


if __name__ == "__main__":
    sys.exit(exit_code(main))
