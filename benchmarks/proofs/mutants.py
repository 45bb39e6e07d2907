"""Mutation testing: runs the tests meant for a file on copies of it with one mistake each.

    python -m benchmarks.proofs.mutants --count 40 --seed 0 --resume --write docs/results/mutants.md
    python -m benchmarks.proofs.mutants --changed main --results changed.json     the functions changed since main

Names every mutant that its tests do not notice, unless benchmarks/proofs/mutation/equivalent_mutants.py says why it
changes nothing. Exit code 1 if there are any. Needs a system with fork (Linux, macOS).
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from argparse import Namespace
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from random import Random

from benchmarks.proofs.mutation.equivalent_mutants import EQUIVALENT
from benchmarks.proofs.mutation.mutant_tests import copied, load_libraries, noticed
from benchmarks.proofs.mutation.mutations import changed_functions, is_inside, mutants, names
from benchmarks.proofs.mutation.running import Trial, each, keeps, known, options, show
from benchmarks.proofs.mutation.tests_of_files import TESTS
from benchmarks.reporting.machine import machine
from benchmarks.reporting.page import exit_code, table

COMMAND = "python -m benchmarks.proofs.mutants"
_RESULTS = Path(__file__).with_name("mutants.json")


def markdown(results: dict[str, dict[str, bool]], described: str) -> str:
    """A row for each folder: mutants there are, run, noticed, equal by an argument, and left."""
    of_folder: dict[str, list[int]] = {}
    for file, found in results.items():
        every = set(names(Path(file).read_text(encoding="utf-8")))
        ran = {name: seen for name, seen in found.items() if name in every}
        missed = [name for name, seen in ran.items() if not seen]
        equal = [name for name in missed if name in EQUIVALENT.get(file, {})]
        numbers = (1, len(every), len(ran), len(ran) - len(missed), len(equal), len(missed) - len(equal))
        sums = of_folder.setdefault(str(Path(file).parent), [0] * len(numbers))
        of_folder[str(Path(file).parent)] = [sum(pair) for pair in zip(sums, numbers, strict=True)]
    head = ("folder", "files", "mutants", "run", "noticed", "change nothing", "not noticed")
    lines = [[f"`{folder}`", *map(str, numbers)] for folder, numbers in of_folder.items()]
    return f"{described}\n\n{table(head, lines)}"


def main() -> int:
    """Run mutants and print the table and what was not noticed; 1 if there is any."""
    args = arguments()
    return exit_code(lambda: run(args))


def run(args: Namespace) -> int:
    """Run what was asked for; results are kept after every mutant."""
    load_libraries()
    results: dict[str, dict[str, bool]] = known(args)
    broken: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        left = each(_trials(args, results, copied(Path(folder)), broken), bool, keeps(args, results))
    described = f"{machine(args.seed, 1, 'pytest')}; {args.count} mutants a file at most, {args.seconds:g} s a mutant"
    show(args, COMMAND, markdown(results, described))
    return 1 if left or broken else 0


def _trials(args: Namespace, results: dict[str, dict[str, bool]], copy: Path, broken: list[str]) -> Iterator[Trial]:
    """Those drawn of every file whose tests pass without a mistake; files of which they do not are `broken`."""
    passing = dict[tuple[str, ...], bool]()
    for file, tests in TESTS.items():
        if args.files not in file:
            continue
        source = (copy / file).read_text(encoding="utf-8")
        functions = None if args.changed is None else changed_functions(_at(args.changed, file), source)
        if functions is not None and not functions:
            continue
        ran = results.setdefault(file, {})
        if tests not in passing:
            passing[tests] = not noticed(copy, file, source, args.seconds)
        if not passing[tests]:
            print(f"the tests of {file} fail, or take too long, without a mistake", file=sys.stderr, flush=True)
            broken.append(file)
            continue
        every = [one for one in mutants(source) if functions is None or is_inside(one.name, functions)]
        for one in Random(args.seed).sample(every, min(args.count, len(every))):
            if not ran.get(one.name, False) and one.name not in EQUIVALENT.get(file, {}):
                run = partial(noticed, copy, file, one.source, args.seconds)
                yield Trial(f"{file}: {one.name}", ran, one.name, run)


def _at(revision: str, file: str) -> str:
    """A file as it was; empty where it was not there."""
    shown = subprocess.run(["git", "show", f"{revision}:{file}"], capture_output=True, text=True, check=False)
    return shown.stdout if shown.returncode == 0 else ""


def arguments() -> Namespace:
    """The command line."""
    parser = options(__doc__, _RESULTS, (1_000_000, "mutants of each file, drawn at random (default all)"))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--changed", metavar="REVISION", help="only functions that are not as they were there")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
