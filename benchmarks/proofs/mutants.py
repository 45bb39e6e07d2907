"""Mutation testing: runs the tests meant for a file on copies of it with one mistake each.

    python -m benchmarks.proofs.mutants --count 40 --seed 0 --resume --write docs/proofs.md

Names every mutant that its tests do not notice, unless benchmarks/proofs/mutation/equivalent_mutants.py says why it
changes nothing. Exit code 1 if there are any. Needs a system with fork (Linux, macOS).
"""

from __future__ import annotations

import json
import sys
import tempfile
from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from pathlib import Path
from random import Random

from benchmarks.proofs.mutation.equivalent_mutants import EQUIVALENT
from benchmarks.proofs.mutation.mutant_tests import TESTS, copied, load_libraries, noticed
from benchmarks.proofs.mutation.mutations import mutants, names
from benchmarks.reporting.machine import machine
from benchmarks.reporting.page import exit_code, put, table
from pipesched.files.atomic_write import write_whole

COMMAND = "python -m benchmarks.proofs.mutants"
_RESULTS = Path(__file__).with_name("mutants.json")


def markdown(results: dict[str, dict[str, bool]], described: str) -> str:
    """A row for each file: mutants there are, run, noticed, equal by an argument, and left."""
    lines = []
    for file, found in results.items():
        every = set(names(Path(file).read_text(encoding="utf-8")))
        ran = {name: seen for name, seen in found.items() if name in every}
        missed = [name for name, seen in ran.items() if not seen]
        equal = [name for name in missed if name in EQUIVALENT.get(file, {})]
        numbers = (len(every), len(ran), len(ran) - len(missed), len(equal), len(missed) - len(equal))
        lines.append([f"`{file}`", *map(str, numbers)])
    head = ("file", "mutants", "run", "noticed", "change nothing", "not noticed")
    return f"{described}\n\n{table(head, lines)}"


def main() -> int:
    """Run mutants and print the table and what was not noticed; 1 if there is any."""
    args = arguments()
    return exit_code(lambda: run(args))


def run(args: Namespace) -> int:
    """Run what was asked for; results are kept after every mutant."""
    load_libraries()
    results: dict[str, dict[str, bool]] = {}
    if args.resume and args.results.exists():
        results = json.loads(args.results.read_text(encoding="utf-8"))
    left, passing = [], dict[tuple[str, ...], bool]()
    with tempfile.TemporaryDirectory() as folder:
        copy = copied(Path(folder))
        for file, tests in TESTS.items():
            if args.files not in file:
                continue
            source = (copy / file).read_text(encoding="utf-8")
            every, ran = mutants(source), results.setdefault(file, {})
            if tests not in passing:
                passing[tests] = not noticed(copy, file, source, args.seconds)
            if passing[tests]:
                for mutant in Random(args.seed).sample(every, min(args.count, len(every))):
                    if not ran.get(mutant.name, False) and mutant.name not in EQUIVALENT.get(file, {}):
                        ran[mutant.name] = noticed(copy, file, mutant.source, args.seconds)
                        write_whole(args.results, json.dumps(results, indent=1) + "\n")
                        if not ran[mutant.name]:
                            left.append(f"{file}: {mutant.name}")
                            print(f"not noticed: {left[-1]}", file=sys.stderr, flush=True)
            else:
                print(f"the tests of {file} fail, or take too long, without a mistake", file=sys.stderr, flush=True)
                left.append(file)
    described = f"{machine(args.seed, 1, 'pytest')}; {args.count} mutants a file at most, {args.seconds:g} s a mutant"
    text = markdown(results, described)
    print(text)
    if args.write is not None:
        put(args.write, COMMAND, text)
    return 1 if left else 0


def arguments() -> Namespace:
    """The command line."""
    parser = ArgumentParser(description=__doc__, formatter_class=RawDescriptionHelpFormatter)
    parser.add_argument(
        "--count", type=int, default=1_000_000, help="mutants of each file, drawn at random (default all)"
    )
    parser.add_argument(
        "--seconds", type=float, default=300, help="of processor time for the tests of each mutant (default 300)"
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--files", metavar="TEXT", default="", help="only those whose names have this text")
    parser.add_argument("--results", type=Path, default=_RESULTS, metavar="FILE")
    parser.add_argument("--resume", action="store_true", help="run only mutants that were not noticed, or not run")
    parser.add_argument("--write", type=Path, metavar="PAGE", help="put the table into this page, docs/proofs.md")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
