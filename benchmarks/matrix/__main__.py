"""All pairs of features of problem and plan files, then triples, tiny, through the search, exact models and commands.

    python -m benchmarks.matrix --pairs --triples 10000 --seed 1 --workers 2 --resume [--write docs/results/matrix.md]

Outcomes are kept one a line in the folder given by --store; --resume runs only what is not there yet. Every pair goes
through every command, of triples one in a hundred; the others through the search, `validate`, `check` and some.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
from argparse import ArgumentParser, RawDescriptionHelpFormatter
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from random import Random
from typing import NamedTuple

from benchmarks.matrix.page import markdown
from benchmarks.matrix.run import KINDS, run_drawn
from benchmarks.matrix.store import Lines
from benchmarks.matrix.switch import together
from benchmarks.reporting.page import exit_code, machine, show

COMMAND = "python -m benchmarks.matrix --write docs/results/matrix.md"
# One triple in so many goes through every command.
_THOROUGH = 100


class Work(NamedTuple):
    """A set of switches of a kind of file, the seed that draws its case, and whether every command runs on it."""

    kind: str
    names: tuple[str, ...]
    seed: int
    thorough: bool


def works(pairs: bool, triples: int, seed: int) -> Iterator[Work]:
    """Single switches and all pairs, if they are asked for, and so many triples."""
    for kind, own in KINDS.items():
        for size in (1, 2) if pairs else ():
            yield from (Work(kind, names, seed, True) for names in together(own, size))
    random = Random(seed)
    sets = {kind: list(together(own, 3)) for kind, own in KINDS.items()}
    every = [(kind, names) for kind, found in sets.items() for names in found]
    random.shuffle(every)
    for at in range(triples):
        kind, names = every[at % len(every)]
        yield Work(kind, names, seed + at // len(every), at % _THOROUGH == 0)


def _run(work: Work, folder: Path) -> int:
    outcome = run_drawn(*work)
    Lines(folder / f"{os.getpid()}.jsonl").keep(outcome)
    for fault in outcome.faults:
        print(f"{work.kind} {' + '.join(work.names)} (seed {work.seed}): {fault[:400]}", file=sys.stderr, flush=True)
    return len(outcome.faults)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what is asked for, print the table; 1 if there is a fault."""
    parser = ArgumentParser(COMMAND, description=__doc__, formatter_class=RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", action="store_true", help="every switch, and every pair of them")
    parser.add_argument("--triples", type=int, default=0, metavar="N", help="so many drawn triples")
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
    held = [Lines(path) for path in sorted(args.store.glob("*.jsonl"))]
    known = set().union(*(lines.known() for lines in held))
    todo = (one for one in works(args.pairs, args.triples, args.seed) if one[:3] not in known)
    with multiprocessing.get_context("spawn").Pool(args.workers, maxtasksperchild=200) as pool:
        pending = [pool.apply_async(_run, (work, args.store)) for work in islice(todo, None)]
        for one in pending:
            one.get()
    every = [one for path in sorted(args.store.glob("*.jsonl")) for one in Lines(path)]
    show(args.write, COMMAND, markdown(every, machine(args.seed, args.workers, "numba")))
    return 1 if any(one["faults"] for one in every) else 0


if __name__ == "__main__":
    sys.exit(exit_code(main))
